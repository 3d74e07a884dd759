"""The process layer: what runs, how it is started, watched, signalled and ended, on either backend.

Standard library only, Python 3.9 or later: on a laptop with Docker this is all that runs outside of containers.
"""
