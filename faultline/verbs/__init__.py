"""The verbs behind the scripts: each reads the words of a command line, calls the stack, and prints the result.

A script in scripts/ has a header and one line, which calls `python -m faultline.verbs VERB` with the Python of the
host. `__main__.py` knows the verbs, `arguments.py` parses flags, and `header.py` makes the help from the script's own
header. The modules with verbs are named as what they act on: `flink.py`, `services.py`, `kafka.py`, `lifecycle.py`.
`programs.py` and `tools.py` start the programs that need packages, such as the verdict and the inspector, where these
are.

An act on a stack is a method of `Stack`, and not here. Standard library and Python 3.9.
"""
