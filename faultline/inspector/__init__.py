"""What is in a Spark or Flink checkpoint, and what a restart from it would do. Reads only, never writes."""
