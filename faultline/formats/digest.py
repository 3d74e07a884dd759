"""A digest of a record's bytes: records are compared by content without keeping the content."""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 16
"""128 bits: among a billion records the odds of a collision are one in 10^20."""


def digest(content: bytes) -> bytes:
    """Digest one text."""
    return blake2b(content, digest_size=DIGEST_BYTES).digest()


def record_digest(key: bytes | None, value: bytes | None) -> bytes:
    """Digest a record's key and value; a null differs from an empty text, and key and value cannot run together."""
    content = b"%d,%d:%b%b" % (
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        key or b"",
        value or b"",
    )
    return blake2b(content, digest_size=DIGEST_BYTES).digest()
