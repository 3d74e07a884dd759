# shellcheck shell=bash
# Summary: Sourced by Spark's own start script, just before it starts the JVM.
# A SIGTERM to the whole process group is for the Python driver, which lets the running batch commit first.
# The JVM inherits the ignored signal; it ends with its driver (end of its standard input).
trap '' TERM
