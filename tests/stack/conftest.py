"""Fixtures of the tests that run real services."""

from tests.stack.broker import broker
from tests.stack.children import spawn
from tests.stack.flink_cluster import cluster, shared_cluster
from tests.stack.running_stack import stack
from tests.stack.store import store

__all__ = ["broker", "cluster", "shared_cluster", "spawn", "stack", "store"]
