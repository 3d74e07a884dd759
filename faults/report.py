"""One self-contained HTML page for a row: the verdict's checks, the times, and a drawing of what happened when."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from faults.model import Check, Result, Row
from faults.timeline import PHASES
from faults.times import phase_begin

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 960, 260, 70, 30
_GAP_SECONDS = 3.0
_COLOURS = {
    "visits sent": "#7a7a7a",
    "visits that Flink has committed": "#c2410c",
    "visits that Spark has committed": "#1d4ed8",
}
_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}
table{border-collapse:collapse;margin:1rem 0}td,th{text-align:left;padding:.25rem .8rem;border-bottom:1px solid #ddd}
.bad{color:#b91c1c;font-weight:600}.good{color:#15803d}svg{width:100%;height:auto}pre{background:#f5f5f5;padding:1rem;overflow:auto}
@media(prefers-color-scheme:dark){body{background:#161616;color:#e8e8e8}pre{background:#242424}td,th{border-color:#444}}"""


def write_report(folder: Path, row: Row, result: Result) -> None:
    """Write report.html from timeline.json."""
    timeline = json.loads((folder / "timeline.json").read_text(encoding="utf-8"))
    kind = "good" if result.outcome.exit_code == 0 else "bad"
    parts = [
        f"<h1>{_text(row.name)}: <span class='{kind}'>{_text(result.outcome.value)}</span></h1>",
        f"<p>Promised: {_text(row.promise)}, since {_text(row.why)}.</p>",
        f"<p class='bad'>{_text(result.reason)}</p>" if result.reason else "",
        drawing(timeline),
        _table(["", "judged", "seen", "expected"], map(_check_row, result.checks)),
        _table(["seconds after the fault", ""], [_row(name, str(seconds)) for name, seconds in result.times.items()]),
        "<h2>What was typed</h2><pre>" + _text(_typed(timeline)) + "</pre>",
    ]  # fmt: skip
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{_text(row.name)}</title><style>{_STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )
    (folder / "report.html").write_text(page, encoding="utf-8")


def drawing(timeline: dict[str, Any]) -> str:
    """Draw the offsets over time as SVG: how many visits are sent, and how many each pipeline has committed."""
    kafka = [each for each in timeline["kafka"] if "visits" in each]
    if not kafka:
        return "<p>No sample was taken.</p>"
    lines = {
        "visits sent": [(each["at"], sum(each["visits"].values())) for each in kafka],
        "visits that Flink has committed": [
            (each["at"], sum(each["group"].values())) for each in kafka if each["group"]
        ],
        "visits that Spark has committed": [
            (each["at"], sum(each["offsets"].values())) for each in timeline["spark"] if "offsets" in each
        ],
    }
    begin, end = kafka[0]["at"], max(kafka[-1]["at"], kafka[0]["at"] + 1)
    values = [value for line in lines.values() for _, value in line]
    low, high = min(values), max(*values, min(values) + 1)

    def across(at: float) -> float:
        return float(_LEFT + (at - begin) / (end - begin) * (_WIDTH - _LEFT - 10))

    def up(value: int) -> float:
        return float(foot - (value - low) / (high - low) * (foot - 20))

    foot = _HEIGHT - _BOTTOM
    marks = []
    broken, healed = phase_begin(timeline, "break"), phase_begin(timeline, "heal")
    if broken is not None:
        width = (across(healed) if healed is not None else _WIDTH - 10) - across(broken)
        marks.append(
            f"<rect x='{across(broken):.1f}' y='10' width='{max(1.0, width):.1f}' height='{foot - 10}' "
            "fill='#b91c1c' opacity='.12'/>"
        )
    for name in PHASES:
        at = phase_begin(timeline, name)
        if at is not None and begin <= at <= end:
            x = f"{across(at):.1f}"
            marks.append(f"<line x1='{x}' y1='10' x2='{x}' y2='{foot}' stroke='#999' stroke-dasharray='3 3'/>")
            marks.append(f"<text x='{x}' dx='3' y='20' font-size='11' fill='currentColor'>{name}</text>")
    for checkpoint, at in _checkpoints(timeline):
        if begin <= at <= end:
            x = f"{across(at):.1f}"
            title = f"<title>chk-{checkpoint}</title>"
            marks.append(f"<line x1='{x}' y1='{foot}' x2='{x}' y2='{foot - 8}' stroke='#c2410c'>{title}</line>")
    drawn = []
    for number, (name, points) in enumerate(lines.items()):
        for part in _without_gaps(points):
            path = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in part)
            drawn.append(f"<polyline points='{path}' fill='none' stroke='{_COLOURS[name]}' stroke-width='2'/>")
        drawn.append(
            f"<text x='{_LEFT + 8}' y='{40 + 16 * number}' font-size='12' fill='{_COLOURS[name]}'>{name}</text>"
        )
    axis = (
        f"<text x='{_LEFT - 6}' y='{up(high):.1f}' font-size='11' text-anchor='end' fill='currentColor'>{high:,}</text>"
        f"<text x='{_LEFT - 6}' y='{up(low):.1f}' font-size='11' text-anchor='end' fill='currentColor'>{low:,}</text>"
        f"<text x='{_WIDTH - 10}' y='{_HEIGHT - 8}' font-size='11' text-anchor='end' fill='currentColor'>"
        f"{end - begin:.0f} s; ticks: completed Flink checkpoints</text>"
    )
    return (
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' role='img' aria-label='offsets over time'>"
        f"{''.join(marks)}{''.join(drawn)}{axis}</svg>"
    )


def _without_gaps(points: list[tuple[float, int]]) -> list[list[tuple[float, int]]]:
    """Divide a line where no sample could be taken: nothing is known of what lies between."""
    parts: list[list[tuple[float, int]]] = []
    for point in points:
        if parts and point[0] - parts[-1][-1][0] <= _GAP_SECONDS:
            parts[-1].append(point)
        else:
            parts.append([point])
    return parts


def _checkpoints(timeline: dict[str, Any]) -> list[tuple[int, float]]:
    found = {
        (each["job_id"], each["latest_checkpoint"]): each["latest_at"] / 1000
        for each in timeline["flink"]
        if each.get("latest_checkpoint") is not None
    }
    return [(number, at) for (_, number), at in sorted(found.items(), key=lambda item: item[1])]


def _check_row(check: Check) -> str:
    mark = "<td class='good'>ok</td>" if check.ok else "<td class='bad'>FAILED</td>"
    return _row(check.what, check.seen, check.expected, first=mark)


def _row(*cells: str, first: str = "") -> str:
    return f"<tr>{first}{''.join(f'<td>{_text(cell)}</td>' for cell in cells)}</tr>"


def _table(heads: Iterable[str], rows: Iterable[str]) -> str:
    body = "".join(rows)
    return f"<table><tr>{''.join(f'<th>{_text(head)}</th>' for head in heads)}</tr>{body}</table>" if body else ""


def _typed(timeline: dict[str, Any]) -> str:
    begin = timeline["events"][0]["at"] if timeline["events"] else 0.0
    return "\n".join(f"{e['at'] - begin:6.1f} s  {e['text']}" for e in timeline["events"] if e["kind"] != "phase")


def _text(text: str) -> str:
    return html.escape(text)
