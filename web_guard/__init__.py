"""The guard before the web pages of Flink and Spark: its Java sources, and how they become a jar."""
