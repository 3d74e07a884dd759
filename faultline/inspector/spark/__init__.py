"""Spark Structured Streaming checkpoints. Offsets, commits and sources are read without a JVM."""
