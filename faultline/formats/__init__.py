"""Data that crosses a process border, as dataclasses and their JSON: visit, ledger, notes of a run, jobs, verdict."""
