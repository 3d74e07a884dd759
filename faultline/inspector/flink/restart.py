"""Prediction of a restore of a Flink job from a checkpoint: where the job reads on, and what is written again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from faultline.inspector.flink.offsets import Offsets
from faultline.inspector.model import Partition, Report, Restart
from faultline.inspector.words import count, positions


def partitions_of(offsets: Offsets) -> list[Partition]:
    """Offsets of one source as partitions without an end."""
    return [Partition(topic, partition, offset, None) for (topic, partition), offset in offsets.items()]


def predict(
    report: Report,
    offsets: Sequence[Offsets],
    name: str,
    sinks: Sequence[tuple[str, bool]],
    unseen: Sequence[str],
    *,
    at_end: int,
) -> Restart:
    """Predict a restore from the checkpoint `name`.

    `offsets`: of each source of Kafka. `sinks`: whether each sink that may be Kafka's keeps transactions. `unseen`:
    what a restore reads and nothing here does. `at_end`: partitions of Kafka that were read to their end.
    """
    number = int(report.id)
    merged: Offsets = {}
    for found in offsets:
        for partition, offset in found.items():
            merged[partition] = min(offset, merged.get(partition, offset))
    partitions = partitions_of(merged)
    limits = [f"this is as far as can be seen from here; not looked at: {', '.join(unseen)}"] if unseen else []
    if not partitions:
        if at_end:
            what = f"it reads nothing again: {count(at_end, 'Kafka partition')} had been read to the end"
        elif offsets:
            what = "it starts at the job's own starting offsets: no Kafka partition had been read"
        elif unseen:
            what = "it goes on"
        else:
            what = "it goes on with its state; none of its operators is a source that keeps a position"
        return Restart("restore", number, f"Restored from {name} now, {what}", details=limits)
    restart = Restart("restore", number, f"Restored now, it reads on from {positions(partitions)}", partitions)
    restart.details.append("nothing before them is read again")
    waiting = len(report.transactions)
    if waiting:
        what = count(waiting, "prepared transaction")
        them = "it" if waiting == 1 else "them"
        restart.transactions = (
            f"first it commits {what}, unless that was done already, and fails where the broker does not know {them}"
        )
    restart.details += [*_repeated(report, sinks), *limits]
    return restart


def _repeated(report: Report, sinks: Sequence[tuple[str, bool]]) -> Iterable[str]:
    """Say what the sinks write a second time: windows that closed after the checkpoint."""
    open_windows = {window.end for each in report.operators for store in each.state for window in store.windows}
    keys = sum(window.keys for each in report.operators for store in each.state for window in store.windows)
    # Windows that closed before the checkpoint are not in its state and are not written again.
    what = (
        f"windows that closed since (of the {len(open_windows)} open here with {count(keys, 'key')}, or begun later)"
        if open_windows
        else "results written since"
    )
    if any(is_transactional for _, is_transactional in sinks):
        yield _of_transactions(report, what)
    if without := [label for label, is_transactional in sinks if not is_transactional]:
        # The state of a file sink is empty, too, while it writes to no file.
        yield (
            f"the empty state of {', '.join(without)} is that of a Kafka sink that is not transactional"
            f" (at-least-once): {what} are written a second time, unless it is another kind of sink"
        )


def _of_transactions(report: Report, what: str) -> str:
    later = report.counts.get("later", 0)
    if later:
        return (
            f"{count(later, 'later checkpoint')} committed results that stay in the topic: {what} are written"
            " a second time"
        )
    others = report.counts.get("later_runs", 0)
    if report.counts.get("apart") and not others:
        return (
            "what its sink wrote since and did not commit is aborted; if the job went on after it, what later"
            f" checkpoints committed stays in the topic, and {what} are written a second time: none is seen from here"
        )
    unless = (
        f", unless {count(others, 'later checkpoint')} of other runs beside it came of a restore from it"
        if others
        else ""
    )
    return (
        f"what its sink wrote since was not committed and is aborted, so nothing is written twice{unless};"
        f" under at-least-once, {what} would be"
    )
