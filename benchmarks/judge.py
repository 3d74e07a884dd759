"""Judge a pipeline and say what that took.

Usage: python -m benchmarks.judge spark|flink

Prints one line: outcome, expected and observed output records, seconds, and the verdict's largest resident memory in
MiB. Exit code 1 when the verdict gave no report.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

KIBIBYTES_PER_UNIT = 1 if sys.platform == "linux" else 1 / 1024
"""What ru_maxrss counts in, by getrusage(2): kibibytes on Linux, bytes on macOS."""


def main() -> int:
    """Run the command line; returns the exit code."""
    started = time.monotonic()
    command = [sys.executable, "-m", "verdict", sys.argv[1], "--json"]
    judged = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    seconds = time.monotonic() - started
    try:
        report = json.loads(judged.stdout)
    except json.JSONDecodeError:
        print(f"judge: the verdict on {sys.argv[1]} gave no report, see the lines above", file=sys.stderr)
        return 1
    mebibytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * KIBIBYTES_PER_UNIT / 1024
    print(report["outcome"], report["expected"], report["observed"], f"{seconds:.1f}", int(mebibytes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
