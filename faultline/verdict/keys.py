"""Hashes of keys, by which Kafka's clients choose a partition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

_SEED, _FACTOR, _SHIFT = 0x9747B28C, 0x5BD1E995, 24
_POSITIVE = 0x7FFFFFFF
_ALL = 0xFFFFFFFF
_WORD = pa.uint32()
_LONG = 256
"""From this length on a key is hashed alone: keys of one length are rare there."""


def key_hashes(keys: Sequence[bytes | None]) -> pa.Array:
    """Hash many keys at once: murmur2, as in Java, from 0 to 2^31 - 1; null for a null key.

    kafka-python hashes byte by byte, in 12 microseconds per key; here each step of murmur2 takes all keys of a length.
    """
    column = pa.array(keys, pa.binary())
    lengths = pc.binary_length(column)
    hashes: list[int | None] = [None] * len(keys)
    for place in pc.indices_nonzero(pc.greater(lengths, _LONG)).to_pylist():
        hashes[place] = _hash_of_one(column[place].as_buffer())
    for length in pc.if_else(pc.greater(lengths, _LONG), None, lengths).unique().drop_null():
        places = pc.indices_nonzero(pc.equal(lengths, length))
        found = _hashes_of_length(column.take(places), length.as_py()).to_pylist()
        for place, value in zip(places.to_pylist(), found, strict=True):
            hashes[place] = value
    return pa.array(hashes, pa.int64())


def _hash_of_one(key: pa.Buffer) -> int:
    """Compute murmur2 of a long key: what a word contributes for all words at once, their order one by one."""
    whole = key.size - key.size % 4
    words = pa.Array.from_buffers(_WORD, whole // 4, [None, key.slice(0, whole)])
    value = _SEED ^ key.size
    for word in _contribution(words).to_pylist():
        value = (value * _FACTOR & _ALL) ^ word
    rest = pa.array([key.slice(whole).to_pybytes()], pa.binary())
    return int(_finish(pa.array([value], _WORD), rest, 0, key.size - whole)[0].as_py())


def _hashes_of_length(keys: pa.Array, length: int) -> pa.Array:
    """Compute murmur2 of keys of this length; unsigned 32-bit arithmetic wraps around, as in Java."""
    factor = pa.scalar(_FACTOR, _WORD)
    hashes = pa.repeat(pa.scalar(_SEED ^ length, _WORD), len(keys))
    whole = length - length % 4
    for begin in range(0, whole, 4):
        hashes = pc.bit_wise_xor(pc.multiply(hashes, factor), _contribution(_slice(keys, begin, 4, _WORD)))
    return _finish(hashes, keys, whole, length)


def _contribution(words: pa.Array) -> pa.Array:
    factor = pa.scalar(_FACTOR, _WORD)
    return pc.multiply(_mixed(pc.multiply(words, factor), _SHIFT), factor)


def _finish(hashes: pa.Array, keys: pa.Array, begin: int, end: int) -> pa.Array:
    """Add the last bytes of the keys, fewer than a word."""
    factor = pa.scalar(_FACTOR, _WORD)
    for place in range(end - 1, begin - 1, -1):
        byte = _slice(keys, place, 1, pa.uint8()).cast(_WORD)
        hashes = pc.bit_wise_xor(hashes, pc.shift_left(byte, pa.scalar(8 * (place - begin), _WORD)))
    if end > begin:
        hashes = pc.multiply(hashes, factor)
    hashes = _mixed(pc.multiply(_mixed(hashes, 13), factor), 15)
    return pc.bit_wise_and(hashes, pa.scalar(_POSITIVE, _WORD))


def _mixed(words: pa.Array, shift: int) -> pa.Array:
    return pc.bit_wise_xor(words, pc.shift_right(words, pa.scalar(shift, _WORD)))


def _slice(keys: pa.Array, begin: int, size: int, kind: pa.DataType) -> pa.Array:
    """Read the bytes at one place of every key as a number, little-endian."""
    part = pc.binary_slice(keys, begin, begin + size)
    return pa.Array.from_buffers(kind, len(part), [None, part.buffers()[2]])
