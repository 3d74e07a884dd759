"""The guard of the web pages of Flink and Spark: its Java sources, and their build."""
