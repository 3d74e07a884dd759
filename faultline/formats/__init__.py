"""Data that crosses a process border: dataclasses with their JSON, and the arguments of programs.

The module that encodes a dataclass also decodes it, so both sides of a border import the same one; only ledgers, of
millions of lines, are decoded by the verdict in its own way. `visit.py` has the one rule that decides whether a record
is a visit; the generator and the verdict use it, and the windowing job has it in Java (VisitRule.java in
flink_job/java/). `ledger.py` is what the generator has sent and what the broker acknowledged; `run.py` is what a job
notes about its own settings when it starts; `status.py` is the state of the Flink job and of both backlogs;
`verdict.py` is the outcome, its counts and its findings. `jobs.py` names the Flink jobs, with the topics, ids and
checkpoints of each. `arguments.py` has the arguments that a script and the program behind it
both parse. `member.py` prints one member of a document, for a shell.

Imports settings and the modules beside it only. Standard library and Python 3.9: the stack's client reads these
documents on the host.
"""
