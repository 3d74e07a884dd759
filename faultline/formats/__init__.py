"""Data that crosses a process border, as dataclasses and their JSON: visit, ledger, status, jobs, verdict.

The module that encodes a dataclass also decodes it, so both sides of a border import the same one; only ledgers, of
millions of lines, are decoded by the verdict in its own way. `visit.py` has the one rule that decides whether a record
is a visit; the generator and the verdict use it, and the windowing job has it in Java (VisitRule.java in
flink_job/java/). `ledger.py` is what the generator has sent and what the broker acknowledged; `run.py` is what a job
notes about its own settings when it starts; `status.py` is the state of the Flink job and of both backlogs;
`verdict.py` is the outcome, its counts and its findings. `jobs.py` names the Flink jobs, with the topics, ids and
checkpoints of each. `requests.py` has the arguments of programs that scripts call with files of their own.
`member.py` and `setting.py` print one member of a document, and one setting, for a shell.

Imports settings and the modules beside it only. Standard library and Python 3.9: the stack's client reads these
documents on the host.
"""
