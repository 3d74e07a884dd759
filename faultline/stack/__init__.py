"""The process layer: services, and how they are started, watched, signalled and stopped, on either backend.

Standard library only, Python 3.9 or later: on a laptop with Docker this is all that runs outside of containers.
"""
