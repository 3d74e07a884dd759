"""One way to read what the engines write: checkpoints, logs of sinks, output files, on a disk or in an object store.

`location.py` is a file or folder, of which `objects.py` has those in a store; whoever reads one asks neither which of
the two it is. `words.py` makes a location of a path or of `s3://BUCKET/PATH`, and `data.py` has the locations of one
stack. `batches.py` finds the newest batch in a log of Spark. `reading.py` reads many small files at once.
`engines.py` is the other side: the settings with which the engines' own clients reach the same store.

Nothing here writes, but for `writing.py`, which checks that the engines can. Python 3.9 or later, as in stack/: the
fault matrix imports it.
"""
