"""The packages and jars of the environments: fetched, made for another release, and listed.

`jars.py` fetches the jars that pip does not carry, by Apache Ivy, and checks each by its hash in docker/requirements/.
`release.py` makes the environment of another release of Spark, for the labs and for pipelines that ask for one.
`sbom.py` lists every locked package and jar of the images as CycloneDX JSON, for `scripts/sbom.sh`.

They run in the environments `tools` and `sbom`, which faultline/stack/artifacts.py makes with the standard library
alone. The names of the locks are in faultline/locks.py.
"""
