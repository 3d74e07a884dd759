"""One screen: each service, the Flink job, the synchronizer, how far both are behind, and whether all is well."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from faultline.formats.status import Backlog
from faultline.messages import say
from faultline.stack.acts.status import Status
from faultline.stack.stack import Stack
from faultline.verbs.arguments import flags_in


def status(stack: Stack, words: Sequence[str]) -> int:
    """Show the state of everything; exit code 0 when all is well, 1 when not."""
    as_json = flags_in("status", words, "--json")
    stack.warn()
    found = stack.status()
    if as_json:
        sys.stdout.write(json.dumps(found.as_json(), indent=2) + "\n")
    elif found.down:
        sys.stdout.write(f"{found.problems[0]}\n")
    else:
        sys.stdout.write("\n".join(_lines(found)) + "\n")
    say(f"backend {stack.backend.name} ({stack.reason})")
    return 0 if found.well else 1


def _lines(found: Status) -> list[str]:
    width = max(len(each.service) for each in found.services)
    lines = [f"{'service':<{width}} {'state':<8} {'memory (MiB)':>12}"]
    lines += [f"{each.service:<{width}} {each.state:<8} {each.memory_mib:>12}" for each in found.services]
    lines.append(f"{'total':<{width}} {'':<8} {sum(each.memory_mib for each in found.services):>12}")
    lines.append("")
    job = found.flink_job
    if job is None:
        lines.append("Flink job      none")
    else:
        newest = f"chk-{job.latest_checkpoint}, {job.latest_age_seconds} s old"
        lines.append(
            f"Flink job      {job.state}, restarts {job.restarts}, newest checkpoint "
            f"{newest if job.latest_checkpoint is not None else 'none yet'}"
        )
    if found.progress:
        batch = found.progress.synchronizer
        lines.append(
            f"synchronizer   newest batch {batch.batch}, committed {batch.age_seconds} s ago"
            if batch
            else "synchronizer   no batch is committed yet"
        )
        lines += [f"{name:<7} behind {_lag(lag)}" for name, lag in (found.progress.behind or {}).items()]
    lines += [f"PROBLEM: {problem}" for problem in found.problems]
    return [*lines, "all is well" if found.well else "not all is well"]


def _lag(found: Backlog | None) -> str:
    if found is None:
        return "nothing"
    if found.unknown:
        return f"unknown: {found.unknown}"
    return f"{found.offsets:,} offsets" if found.offsets else found.text
