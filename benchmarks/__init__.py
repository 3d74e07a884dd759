"""Benchmarks of both pipelines, recovery, other engines, the verdict and the inspector, each beside a baseline."""
