"""The content of a Spark or Flink checkpoint, and the effects of a restart from it. Checkpoints are read only.

`__main__.py` is the command behind `scripts/inspect.sh`. `recognize.py` finds out which engine wrote a path;
`reading.py` makes a report of it: Spark's files are read here (`spark/`), Flink's by a process in the Flink
environment (`flink/`), since only Flink's own classes read them. Both fill the dataclasses of `model.py`, and
`render/` turns these into sentences or tables. `against.py`, `diff.py`, `garbage.py`, `growth.py` and `rows.py` ask
one more question each, the same for both engines. `transactions/` compares what checkpoints promise with what is open
on the broker, and ends a transaction when it is told to.

A rule that says what an engine does names the class of that engine from which it was read.
"""
