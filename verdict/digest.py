"""A short stand-in for a record's bytes: records are compared by content without keeping the content."""

from __future__ import annotations

import hashlib

from verdict.store import DIGEST_BYTES


def digest(*parts: bytes | None) -> bytes:
    """Digest byte strings, each told apart from the next and from a null; 128 bits make a chance match hopeless."""
    if len(parts) == 1:
        return hashlib.blake2b(parts[0] or b"", digest_size=DIGEST_BYTES).digest()
    framed = b"".join(b"-" if part is None else b"%d:%b" % (len(part), part) for part in parts)
    return hashlib.blake2b(framed, digest_size=DIGEST_BYTES).digest()
