"""The findings as lines for people."""

from __future__ import annotations

from faultline.inspector.transactions.model import ABORT, COMMIT, Found, OpenTransaction
from faultline.inspector.words import age_words, count, time_words

SCRIPT = "scripts/transactions.sh"


def render(found: Found, now: float) -> str:
    """Say where readers stop, and each open transaction with what is right for it; `now`: seconds since the epoch."""
    behind = [stop for stop in found.stops if stop.end > stop.stable]
    if not found.transactions and not behind:
        return f"{found.topic}: no transaction is open, and readers of committed records get everything"
    stops = ", ".join(f"partition {each.partition} at {each.stable} of {each.end}" for each in behind)
    lines = [
        f"{found.topic}: {count(len(found.transactions), 'transaction')} open;"
        f" readers of committed records stop in {stops or 'no partition'}"
    ]
    for each in found.transactions:
        lines += [f"transaction {each.label}", *(f"  {line}" for line in _lines(found.topic, each, now))]
    return "\n".join(lines + [f"not read: {sentence}" for sentence in found.unreadable])


def _lines(topic: str, each: OpenTransaction, now: float) -> list[str]:
    lines = [f"producer {each.producer_id}, epoch {each.epoch}, {each.state or 'without a coordinator'}"]
    if each.since is not None:
        lines.append(f"open since {time_words(each.since)} ({age_words(now - each.since / 1000)})")
    if each.ends_at is not None:
        lines.append(f"the broker aborts it at {time_words(each.ends_at)}, unless it ends before")
    lines.append("first record: " + ", ".join(f"partition {at.partition} at {at.first_offset}" for at in each.held))
    lines += [
        f"prepared for checkpoint {promise.checkpoint} of job {promise.job_id or '(a savepoint)'}: {promise.path}"
        for promise in each.promises
    ]
    lines.append(f"{each.right}: {each.why}")
    if each.right in (COMMIT, ABORT):
        lines.append(f"{SCRIPT} {topic} --{each.right} {each.transactional_id} --apply")
    return lines
