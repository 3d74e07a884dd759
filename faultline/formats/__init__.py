"""Data that crosses a process border, as dataclasses and their JSON: a visit, the ledger, notes of a run, the jobs."""
