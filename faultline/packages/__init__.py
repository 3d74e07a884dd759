"""The packages and jars of the environments: fetched, made for another release, and listed."""
