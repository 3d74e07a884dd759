"""The process layer: services, and how they are started, watched, signalled and stopped, on either backend.

`stack.py` is the client: `open_stack()` makes one `Stack`, and scripts, faults, page, benchmarks and tests call its
methods. `acts/` has the acts behind these methods. `services.py` is the table of services, in the order of their
start; `backends/` runs them, as processes under a keeper (`local.py`, `keeper.py`) or as containers (`compose.py`).
`settings.py` says which value wins, and `home.py` marks the folders that belong to a stack: nothing else is ever
removed. `processes.py` finds the processes of a stack by a mark in their environment.

Standard library only, Python 3.9 or later, as in verbs/ and faults/: on a laptop with Docker nothing else runs outside
of containers.
"""
