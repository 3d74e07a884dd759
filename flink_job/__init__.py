"""The windowing job: visits in, one count per visit and window out; late and unparsable visits go to other topics.

`stateful_flink_consumer.py` is the job. `tables.py` has its topics as tables, `on_time.py` its step in Java that
decides which visit is late (`java/`), `names.py` the uid of each operator, and `guarantees.py` each setting of a
guarantee with its reason. `classic.py` is the same job as tutorials write it; `one_more_aggregate.py` is the job
changed, for a restore by another program.

`submit.py`, `cancel.py`, `status.py` and `position.py` ask the JobManager, by `rest.py`. `configuration.py` writes
the configuration of a JobManager or TaskManager at each start.
"""
