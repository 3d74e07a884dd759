"""Start golden checkpoints with other releases than wrote them, and keep what came of it. Tools environment.

Usage: python -m tests.golden.upgrades [spark-4.2] [spark-4.3] [flink]    nothing named: only write the page again

flink: what each release wrote, restored by that of the stack. docs/upgrades.json has what was predicted and what the
release did; docs/upgrades.md is rendered from it. A restart of Spark that is on record is not carried out again: delete
its entry first.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from faultline.files import replace_text
from faultline.inspector.held_back import add_fates
from faultline.inspector.model import Transaction
from faultline.inspector.spark.report import read_report
from faultline.locks import LOCKS
from faultline.settings import ROOT
from tests.golden.archives import releases
from tests.golden.record import restored
from tests.stack.broker import Broker, run_broker
from tests.stack.flink_cluster import described
from tests.stack.releases import Prediction, copies, is_as_said, made_python, predicted, restarted

PAGE, RECORD = ROOT / "docs" / "upgrades.md", ROOT / "docs" / "upgrades.json"
FROM, ONTO = ("3.5", "4.0", "4.1", "4.2"), ("4.2", "4.3")
"""Releases of Spark that wrote the checkpoints, and those that start them: the stack's, and the newest that was had."""
_PAGE = """\
# What an upgrade of an engine does

Rendered from [upgrades.json](upgrades.json) by `python -m tests.golden.upgrades`; do not edit it. "Predicted" is what
[the inspector](reading_a_checkpoint.md) says of a checkpoint before the restart.

## Spark

`python -m tests.golden.upgrades spark-4.2 spark-4.3` starts the golden checkpoints of older releases with newer ones,
and records what was predicted and what happened. "Went on" is a batch that was committed.

| written by | started by | checkpoint | predicted | carried out | versions of the logs |
| --- | --- | --- | --- | --- | --- |
{spark}

## Flink

`python -m tests.golden.upgrades flink` restores, in the stack's release, what each release wrote, with the same job and
Kafka connector. A savepoint holds transactions that are prepared and not committed. The restore commits them, and
`KafkaCommitter` fails the job when the broker does not know one: it is another broker, or seven days have gone by
(`transactional.id.expiration.ms`).

| restored | written by (version of its metadata) | predicted | carried out | version that this release writes |
| --- | --- | --- | --- | --- |
{flink}
"""

KNOWN = "savepoint, whose transactions the broker has"
_KINDS = {
    "checkpoint": ("at-least-once", "at-least-once/*/chk-*"),
    "savepoint, whose transactions the broker does not know": ("exactly-once", "exactly-once/savepoint-*-*"),
    KNOWN: ("exactly-once", "exactly-once/savepoint-*-*"),
}
"""By what is restored: the delivery of the job, and where it is."""

Upgrade = dict[str, Any]
"""One restart of Spark: written, started, recipe, predicted, step, error, committed, before and after (versions of the
logs); one of Flink: written, restored (of _KINDS), predicted, error, before and after (of `_metadata`)."""


def carried_out(onto: str, folder: Path, known: set[tuple[str, str]]) -> list[Upgrade]:
    """Start each golden checkpoint of an older release with a newer one, but those that are known.

    One that ended in no error and made no batch in its time, as on a machine that has other work, says nothing.
    """
    places = {
        (written, recipe): place
        for written in FROM
        if written != onto
        for recipe, place in copies(written, onto, folder).items()
        if (written, recipe) not in known
    }
    if not places:
        return []
    said = {key: predicted(place, onto) for key, place in places.items()}
    before = {key: _versions(place) for key, place in places.items()}
    done = restarted(made_python(onto), list(places.values()))
    found = []
    for key, place in places.items():
        (written, recipe), (action, step, _), (error, committed) = key, said[key], done[place]
        if not error and not committed:
            print(f"{recipe} of {written} made no batch on {onto}; run this again", file=sys.stderr)
            continue
        found.append(
            {"written": written, "started": onto, "recipe": recipe, "predicted": action, "step": step,
             "error": error, "committed": committed, "before": before[key], "after": _versions(place)}
        )  # fmt: skip
    return found


def _versions(place: Path) -> dict[str, str]:
    """The version of the newest file of each log."""
    formats = read_report(place / "checkpoint", 1, None).formats
    return {name: found.partition(",")[0] for name, found in formats.items()}


def _condition(error: str) -> str:
    """The name of Spark's error condition, the last one of a chain; the whole error where it has none."""
    named = re.findall(r"\[([A-Z][A-Z0-9_.]+)\]", error)
    return f"`{named[-1]}`" if named else error


def restored_by_flink(folder: Path) -> list[Upgrade]:
    """Restore what each release wrote: a checkpoint, and a savepoint of whose transactions the broker knows or not."""
    here = re.findall(r"^apache-flink==(\d+\.\d+)", (LOCKS / "flink.lock").read_text(), re.MULTILINE)[0]
    found: list[Upgrade] = []
    for golden, kind in product(releases("flink"), _KINDS):
        delivery, pattern = _KINDS[kind]
        path, after = (_newest(each, pattern) for each in (golden, golden.with_name(f"flink-{here}")))
        home = folder / str(len(found))
        for broker in run_broker(home):
            broker.create_topics("visits", "visit_windows")
            [report] = described(path)
            with prepared(broker, report.transactions if kind == KNOWN else []):
                add_fates(report, broker.bootstrap)
                assert kind != KNOWN or {each.fate for each in report.transactions} == {"open"}
                [reason] = restored(broker, home, delivery, [path])
        assert report.restart is not None
        found.append(
            {"written": golden.name.removeprefix("flink-"), "restored": kind, "predicted": report.restart.action,
             "error": reason, "before": _metadata_version(path), "after": _metadata_version(after)}
        )  # fmt: skip
    return found


@contextmanager
def prepared(broker: Broker, transactions: list[Transaction]) -> Iterator[None]:
    """Begin transactions at a new broker by the ids and producer ids that a savepoint has of them."""
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    with ExitStack() as begun:
        begun.callback(admin.close)
        ids = {each.producer_id: each.transactional_id for each in transactions}
        # The broker counts producer ids: others take those before. Its first producer makes it ready for all.
        for number in range(max(ids, default=0) + 1):
            name = ids.get(number, f"other-{number}")
            producer = KafkaProducer(
                bootstrap_servers=broker.bootstrap, transactional_id=name, transaction_timeout_ms=600_000
            )
            begun.callback(producer.close)
            producer.init_transactions()
            assert admin.describe_transactions([name])[name].producer_id == number
            if number in ids:
                producer.begin_transaction()
                producer.send("visit_windows", b"a window").get(30)
        yield


def _newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: (len(path.name), path.name))


def _metadata_version(path: Path) -> int:
    """The version behind the magic number, as in `Checkpoints.loadCheckpointMetadata` of Flink."""
    return int.from_bytes((path / "_metadata").read_bytes()[4:8])


def flink_table(upgrades: list[Upgrade]) -> str:
    """Render the rows, all releases of one outcome in one line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for each in upgrades:
        said = "refuses" if each["predicted"] == "impossible" else "goes on"
        did = f"refused: `{each['error'].partition(':')[0]}`" if each["error"] else "every task ran"
        lines.setdefault((each["restored"], said, did, str(each["after"])), []).append(
            f"{each['written']} ({each['before']})"
        )
    rows = [
        f"| {restored} | {', '.join(written)} | {said} | {did} | {after} |"
        for (restored, said, did, after), written in lines.items()
    ]
    return "\n".join(rows)


def spark_table(upgrades: list[Upgrade]) -> str:
    """Render the rows, those of one outcome in one line."""
    lines: dict[tuple[str, ...], list[str]] = {}
    for each in upgrades:
        agrees = is_as_said(Prediction(each["predicted"], each["step"]), each["error"], each["committed"])
        said = "refuses" if each["predicted"] == "impossible" else "goes on"
        did = f"refused: {_condition(each['error'])}" if each["error"] else "went on"
        changes = [
            f"{name}: {was} to {each['after'][name].removeprefix('version ')}"
            for name, was in each["before"].items()
            if was != each["after"].get(name, was)
        ]
        kept = ", ".join(f"{name}: {was}" for name, was in each["before"].items())
        key = (each["written"], each["started"], said, did if agrees else f"{did}: not as predicted")
        lines.setdefault((*key, "; ".join(changes) or f"the same ({kept})"), []).append(each["recipe"])
    rows = [
        f"| {written} | {started} | {', '.join(f'`{name}`' for name in recipes)} | {said} | {did} | {versions} |"
        for (written, started, said, did, versions), recipes in lines.items()
    ]
    return "\n".join(rows)


def page(upgrades: dict[str, list[Upgrade]]) -> str:
    """Render the page of a record."""
    return _PAGE.format(spark=spark_table(upgrades["spark"]), flink=flink_table(upgrades["flink"]))


def main() -> int:
    """Carry out what is named, and write record and page; returns the exit code."""
    if unknown := set(sys.argv[1:]) - {"flink", *(f"spark-{release}" for release in ONTO)}:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; see the usage")
    upgrades: dict[str, list[Upgrade]] = json.loads(RECORD.read_text())
    for wanted in sys.argv[1:]:
        engine, _, onto = wanted.partition("-")
        with tempfile.TemporaryDirectory() as folder:
            if engine == "flink":
                upgrades["flink"] = restored_by_flink(Path(folder))
                continue
            known = {(each["written"], each["recipe"]) for each in upgrades["spark"] if each["started"] == onto}
            upgrades["spark"] += carried_out(onto, Path(folder), known)
    upgrades["spark"].sort(key=lambda each: (each["started"], each["written"], each["recipe"]))
    replace_text(RECORD, json.dumps(upgrades, indent=1) + "\n")
    replace_text(PAGE, page(upgrades))
    return 0


if __name__ == "__main__":
    sys.exit(main())
