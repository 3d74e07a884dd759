"""Walkthrough 11: the synchronizer killed and stopped inside a batch.

Run by scripts/walkthroughs/11_micro_batch_restart.sh
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

from faultline.formats.visit import output_line
from faultline.inspector.spark.log import list_log
from faultline.inspector.spark.sources import log_entries
from faultline.settings import ROOT
from faultline.stack.processes import Program
from faultline.storage.batches import SINK_LOG
from labs.frame.broker import Broker, running_broker
from labs.frame.count import compare
from labs.frame.feeds import values
from labs.frame.inspect import inspect
from labs.frame.programs import LIMIT_SECONDS, environment, generate, program
from labs.frame.run import Lab, run
from labs.frame.story import Fact, same
from spark_job.options import AVAILABLE_NOW, FILES
from spark_job.session import check_java

NAME = "11_micro_batch_restart"
_BATCH_ROWS = 2500
# Two full batches and a part of a third one; then more, so that a newly planned batch would have another range.
_VISITS, _MORE_VISITS = 6000, 1500
_KILLED, _STOPPED = 2, 3
_LINE = re.compile(r"batch (\d+)( \(re-run[^)]*\))?: (.*), (\d+) rows")
_RANGE = re.compile(r"-(\d+) \[(\d+), (\d+)\)")
Ends = dict[str, int]


class Experiment:
    """The synchronizer on the lab's broker, its checkpoint, and Spark's progress reports."""

    def __init__(self, lab: Lab, broker: Broker) -> None:
        self.lab, self.story, self.broker = lab, lab.story, broker
        self.topic = lab.settings.text("VISITS_TOPIC")
        self.partitions = lab.settings.number("TOPIC_PARTITIONS")
        query = lab.settings.query(FILES)
        self.environ = environment(lab.folder, broker)
        self.checkpoint = lab.folder / "checkpoints" / "spark" / query
        self.output = lab.folder / "output" / query
        self.runs = 0

    def synchronizer(self, *flags: str) -> Program:
        """Start the synchronizer like the stack does."""
        self.runs += 1
        flags = ("--sink", FILES, "--max-offsets-per-trigger", str(_BATCH_ROWS), *flags)
        self.story.command(f"faultline/services/spark.sh {shlex.join(flags)}")
        log = self.lab.folder / f"synchronizer_{self.runs}.log"
        return program([str(ROOT / "faultline" / "services" / "spark.sh"), *flags], self.environ, log)

    def send(self, visits: int) -> None:
        """Let the real generator send visits."""
        self.story.command(f"python -m generator --total {visits} --rate 0")
        generate(visits, "--rate", "0", environ=self.environ)

    def held(self, batch: int) -> bool:
        """Return whether this batch waits between its offsets and its commit; a killed run leaves its own marker."""
        try:
            return Path(f"{self.checkpoint}.held").read_text(encoding="utf-8").strip() == str(batch)
        except FileNotFoundError:
            return False

    def has(self, name: str) -> bool:
        """Return whether the checkpoint has a file."""
        return (self.checkpoint / name).exists()

    def planned(self, batch: int) -> Ends:
        """Return the ends in `offsets/N`, by partition; before batch 0, the first offsets in `sources/0/0`."""
        path = self.checkpoint / (f"offsets/{batch}" if batch >= 0 else "sources/0/0")
        return dict(json.loads(path.read_text(encoding="utf-8").splitlines()[-1])[self.topic])

    def range(self, batch: int) -> dict[str, tuple[int, int]]:
        """Return start and end of each partition of a batch, by the files."""
        start, end = self.planned(batch - 1), self.planned(batch)
        return {partition: (start[partition], end[partition]) for partition in sorted(end)}


def reported(words: str) -> list[tuple[int, bool, dict[str, tuple[int, int]]]]:
    """(batch, whether it ran again, start and end by partition) of each `StreamingQueryProgress`."""
    return [
        (int(batch), bool(rerun), {part: (int(start), int(end)) for part, start, end in _RANGE.findall(ranges)})
        for batch, rerun, ranges, _ in _LINE.findall(words)
    ]


def what_is_in_it(do: Experiment) -> None:
    """The tree, and the three kinds of files."""
    do.story.step("what a checkpoint is made of")
    do.story.tree(do.checkpoint)
    for name in ("metadata", "offsets/0", "commits/0", "sources/0/0"):
        do.story.file(do.checkpoint / name, do.checkpoint)
    version, settings, offsets = (do.checkpoint / "offsets/0").read_text(encoding="utf-8").splitlines()
    commit = (do.checkpoint / "commits/0").read_text(encoding="utf-8").splitlines()
    rows = sum(end - start for start, end in do.range(0).values())
    do.story.prove(
        "offsets/N has three lines: the version, the settings that stay pinned, and the end of each partition's "
        "range; commits/N says that the batch is done, but not what it read.",
        same(
            "folders and files",
            [name for name in ("commits", "metadata", "offsets", "sources") if do.has(name)],
            ["commits", "metadata", "offsets", "sources"],
        ),
        same("first line", version, "v1"),
        Fact(
            f"second line: batchTimestampMs and {len(json.loads(settings)['conf'])} settings",
            {"batchTimestampMs", "batchWatermarkMs", "conf"} <= json.loads(settings).keys(),
        ),
        # Each partition gets its share of the limit, rounded down.
        Fact(
            f"third line: {offsets}, {rows} records of at most {_BATCH_ROWS}",
            _BATCH_ROWS - do.partitions <= rows <= _BATCH_ROWS,
        ),
        same("commits/0", commit, ["v1", '{"nextBatchWatermarkMs":0}']),
    )


def killed(do: Experiment) -> bytes:
    """SIGKILL while batch 2 is planned and not committed; returns its offsets file."""
    n = _KILLED
    do.story.step(f"the synchronizer, with batch {n} held between offsets/{n} and commits/{n}")
    with do.synchronizer("--trigger", "1 second", "--hold-batch", str(n)) as synchronizer:
        synchronizer.wait_for(lambda: do.held(n), f"batch {n} held", seconds=LIMIT_SECONDS)
        what_is_in_it(do)
        do.story.step("SIGKILL inside the batch")
        do.story.file(do.checkpoint / f"offsets/{n}", do.checkpoint)
        do.story.say(f"commits/{n}: {'exists' if do.has(f'commits/{n}') else 'does not exist'}")
        planned = (do.checkpoint / f"offsets/{n}").read_bytes()
        inside = not do.has(f"commits/{n}")
        do.story.say(f"SIGKILL to all of its processes: exit code {synchronizer.kill()}")
    inspect(do.story, do.checkpoint)
    do.story.prove(
        "The kill fell between offsets/N and commits/N.",
        Fact(f"offsets/{n} was written, commits/{n} was not", inside and not do.has(f"commits/{n}")),
    )
    return planned


def restarted_and_stopped(do: Experiment, planned: bytes) -> None:
    """The restart runs batch 2 again; after a SIGTERM in batch 3 the synchronizer waits for its commit."""
    n, next_batch = _KILLED, _STOPPED
    do.story.step("more visits arrive, then the restart: which batch, which range?")
    do.send(_MORE_VISITS)
    with do.synchronizer("--trigger", "1 second", "--hold-batch", str(next_batch)) as synchronizer:
        synchronizer.wait_for(lambda: do.held(next_batch), f"batch {next_batch} held", seconds=LIMIT_SECONDS)
        # Spark reports a batch on another thread.
        synchronizer.wait_for(lambda: bool(reported(synchronizer.words())), "Spark's progress", seconds=LIMIT_SECONDS)
        batches = reported(synchronizer.words())
        do.story.say("\n".join(line for line in synchronizer.words().splitlines() if "batch" in line))
        do.story.prove(
            "After SIGKILL between offsets/N and commits/N the restart re-runs batch N with the very same range.",
            same("batches by Spark's progress, re-run or not", [batch[:2] for batch in batches], [(n, True)]),
            same(f"range of batch {n} by Spark's progress", batches[0][2] if batches else None, do.range(n)),
            Fact(
                f"offsets/{n} as before the kill, byte for byte",
                (do.checkpoint / f"offsets/{n}").read_bytes() == planned,
            ),
            Fact(
                f"{_MORE_VISITS} visits sent meanwhile are not in it, but in batch {next_batch}",
                sum(end - start for start, end in do.range(next_batch).values()) == _MORE_VISITS,
            ),
            Fact(f"commits/{n} is there now", do.has(f"commits/{n}")),
        )
        do.story.step(f"SIGTERM inside batch {next_batch}")
        synchronizer.terminate()
        synchronizer.wait_for(
            lambda: "stopping after batch" in synchronizer.words(), "an answer to SIGTERM", seconds=LIMIT_SECONDS
        )
        committed_early = do.has(f"commits/{next_batch}")
        Path(f"{do.checkpoint}.release").touch()
        code = synchronizer.wait(seconds=LIMIT_SECONDS)
        do.story.say("\n".join(synchronizer.words().splitlines()[-2:]))
    do.story.prove(
        "After SIGTERM the synchronizer ends its batch first: nothing is left to run again.",
        same("exit code", code, 0),
        Fact(f"commits/{next_batch} came after the signal", not committed_early and do.has(f"commits/{next_batch}")),
    )


def goes_on(do: Experiment) -> None:
    """The start after a SIGTERM."""
    following = _STOPPED + 1
    do.story.step("more visits, and a start after SIGTERM")
    do.send(_MORE_VISITS)
    before = (do.checkpoint / f"offsets/{_STOPPED}").read_bytes()
    with do.synchronizer("--trigger", AVAILABLE_NOW) as synchronizer:
        code = synchronizer.wait(seconds=LIMIT_SECONDS)
        batches = reported(synchronizer.words())
        do.story.say("\n".join(line for line in synchronizer.words().splitlines() if "batch" in line))
    do.story.prove(
        "After SIGTERM the restart continues with batch N+1, from where batch N ended.",
        same("exit code", code, 0),
        same("batches by Spark's progress, re-run or not", [batch[:2] for batch in batches], [(following, False)]),
        same(
            f"range of batch {following} by Spark's progress", batches[0][2] if batches else None, do.range(following)
        ),
        same("it starts at", {part: start for part, (start, _) in do.range(following).items()}, do.planned(_STOPPED)),
        Fact(
            f"offsets/{_STOPPED} is not written again", (do.checkpoint / f"offsets/{_STOPPED}").read_bytes() == before
        ),
    )


def sent(do: Experiment) -> list[bytes]:
    """Return the output line of every record of the topic."""
    return [output_line(value) for value in values(do.broker.bootstrap, do.topic)]


def written(do: Experiment) -> list[bytes]:
    """Return every line of the files that the sink's log names: others are leftovers of the killed batch."""
    log = list_log(do.output / SINK_LOG)
    names = {entry["path"] for number in log.valid() for entry in log_entries(log, number)}
    return [line for name in names for line in Path(name.removeprefix("file://")).read_bytes().split(b"\n")[:-1]]


def experiment(lab: Lab) -> None:
    """Run the steps; the broker and each synchronizer end with them."""
    check_java()
    lab.story.step("a broker for this lab, and visits from the generator")
    with running_broker(lab.folder / "kafka", lab.settings) as broker:
        do = Experiment(lab, broker)
        broker.create_topic(do.topic, do.partitions)
        do.send(_VISITS)
        restarted_and_stopped(do, killed(do))
        goes_on(do)
        do.story.step("count")
        difference = compare(sent(do), written(do))
        do.story.prove(
            "Killed once and stopped once, the file sink has every visit exactly once.",
            Fact(f"output: {difference}", difference.clean and difference.expected == _VISITS + 2 * _MORE_VISITS),
        )


if __name__ == "__main__":
    sys.exit(run(NAME, experiment))
