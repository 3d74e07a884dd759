"""The content of a Spark or Flink checkpoint, and the effects of a restart from it. Reads only, never writes."""
