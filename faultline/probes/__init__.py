"""Small measurements on a running stack, for walkthroughs, faults, the page and people.

Most modules are programs that ask one question, print one answer and end. `planned.py` asks for the batches that Spark
has planned, `window_latency.py` for the seconds until a window is read. Two programs go on: `watch.py` samples a stack
twice a second while a row of the matrix breaks it, and `exporter.py` answers Prometheus. The live page takes its
samples from `watch.py` and `reached.py`.

They run where the packages are, in a container or in an environment of the local backend; `scripts/exec.sh` starts
one by hand.
"""
