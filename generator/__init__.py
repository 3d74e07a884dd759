"""Visits of imaginary users, sent to Kafka or printed; the same seed and start give the same visits.

`__main__.py` is the command. `config.py` has every key of the configuration once; `pools.py` makes users and pages by
Faker, from the seed only, and `visits.py` makes the stream of records from them, with the late, repeated and
unparsable ones that were asked for. `sender.py` sends the records, and `ledger.py` notes each before it is sent and
once the broker has it: so the verdict knows what must be on the topic, whatever dies in between.

`close.py` is a command of its own: it ends a stream, by the visits after which no window of an earlier visit is open.
"""
