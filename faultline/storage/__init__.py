"""One way to read what the engines write: checkpoints, logs of sinks, output files, wherever they lie.

Python 3.9 or later, as in stack/: the fault matrix imports it.
"""
