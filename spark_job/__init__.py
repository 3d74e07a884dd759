"""Spark Structured Streaming from topic `visits` to JSON lines in files.

`visits_json_synchronizer.py` is the program, `options.py` its flags, `session.py` every setting of Spark with its
reason, and `query.py` the query: Kafka in, text lines out, and one of the sinks. `batch_sinks.py` has the sinks that
write in foreachBatch. `checkpoint.py` claims a checkpoint location, so that no two runs share one, and `hold.py` stops
inside a batch, between `offsets/N` and `commits/N`: lessons and faults kill there. `report.py` prints a line for each
committed batch.

`devices_file_stream.py` is the second program, a stream from files. `standalone.py` starts a master or a worker.
"""
