"""The judge: expected records from the topic, observed ones from the outputs, their difference, an outcome.

`program.py` is the command behind `scripts/verdict.sh`. `checkers/` has one checker a pipeline: it waits until the
pipeline has caught up (`checker.py`), reads topics and files into tables of DuckDB (`store.py`, `loading.py`), and
asks its judge. `source/`, `spark/`, `flink/` and `classic/` are the judges: a judge has no I/O but these tables, and
recomputes what must be there without code of the job that it judges. `flink/decisions.py` explains when a visit may be
late. `report.py` prints the counts and the findings.

What cannot be read or is not settled yet is unknown, never a verdict.
"""
