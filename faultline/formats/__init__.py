"""What crosses a process border, as dataclasses and their JSON: a visit, the ledger, the notes of a run, the jobs."""
