"""Which partition a key belongs to, as Kafka's own clients choose it."""

from __future__ import annotations

from functools import lru_cache

from kafka.partitioner.default import murmur2


@lru_cache(maxsize=100_000)
def key_hash(key: bytes) -> int:
    """Hash of a key, from 0 to 2^31 - 1: murmur2, as in Java."""
    return int(murmur2(key)) & 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """Partition of a key among so many: the choice of the default partitioner."""
    return key_hash(key) % partitions
