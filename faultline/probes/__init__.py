"""Small measurements on a running stack, for walkthroughs, faults, the page and people.

Most modules are programs: each asks one question, prints one answer and ends: `planned.py` the batches that
Spark has planned, `replayed.py` the records that a restore reads again, `window_latency.py` the seconds until a window
is read, and so on. Two go on: `watch.py` samples a stack twice a second while a row of the matrix breaks it, and
`exporter.py` answers Prometheus. The live page takes its samples from `watch.py` and `reached.py`.

They run where the packages are, in a container or in an environment of the local backend; `scripts/exec.sh` starts
one by hand.
"""
