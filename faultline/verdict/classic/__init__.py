"""The judge of the classic Flink job, by the content of its records alone."""
