"""Spark Structured Streaming from topic `visits` to JSON lines in files."""
