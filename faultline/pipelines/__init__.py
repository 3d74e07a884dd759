"""Pipelines that users bring: each is one TOML file, judged by one SQL query over the topic that it reads.

`spec.py` reads and checks the file. `readers/` reads what the pipeline wrote, a module for each kind of sink.
`judge.py` compares the rows that the query yields with the rows of the output, as multisets, and makes the verdict
of faultline/formats/verdict.py. `trial.py` starts, feeds, kills and stops the pipeline; `rows.py` has the faults as
data; `server.py` is a Postgres for pipelines that write into one. `program.py` is the command line behind
scripts/pipeline.sh.

All of it runs in the environment `pipeline` (docker/requirements/pipeline.in). A pipeline's own commands run as the
user, in an environment that the file names.
"""
