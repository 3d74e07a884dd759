"""Throughput of both pipelines as a ratio to Kafka's own consumer, in one run, records counted in and out."""
