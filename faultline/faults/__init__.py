"""The fault matrix: real failures on a real stack, timed, and judged from the records.

`rows/` has the rows as data: steps that break, steps that repair, a promise, and the reason for it. `steps.py` has the
steps; each acts on a `Stack` and renders the line that a person types. `plan.py` chooses the rows and the moment of
each fault, `matrix.py` runs them one after the other, `trial.py` takes one row from load to verdict, and `judges/`
check what a verdict does not say, such as the offset from which a job read on. `guarantees.py` keeps the results and
renders docs/guarantees.md.

`soak.py` draws faults at random (`catalogue.py`, `schedule.py`) and cuts a failing run down (`shrink.py`).
docs/adding_a_fault.md is the recipe for a new one.
"""
