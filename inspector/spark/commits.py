"""`commits/N`: batch N was carried out, its output was handed over (Spark's CommitLog)."""

from __future__ import annotations

from inspector.spark.log import LogError, LogFolder, LogGone, parse, read_lines


def read_commits(folder: LogFolder) -> tuple[dict[int, int], dict[int, str]]:
    """Read every commit file: watermark for the next batch (milliseconds) by number, and errors by number.

    A commit without content counts as committed for Spark before 2.4 and is an error here.
    """
    commits: dict[int, int] = {}
    errors: dict[int, str] = {}
    for number in list(folder.numbers):
        try:
            lines = read_lines(f"{folder.path}/{number}")
            document = parse(lines[0] if lines else b"")
            commits[number] = int(document["nextBatchWatermarkMs"])
        except LogGone:
            # A running query deleted it meanwhile, as an old one.
            folder.numbers.remove(number)
        except LogError as error:
            errors[number] = str(error)
        except (KeyError, TypeError, ValueError):
            errors[number] = "it has no nextBatchWatermarkMs"
    return commits, errors
