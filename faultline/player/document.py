"""The page as HTML: with links to its files for the server, or with all of them inside, as one file to keep."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

STATIC = Path(__file__).resolve().parent / "static"
STYLES = ("vendor/uPlot.min.css", "page.css")
SCRIPTS = (
    "vendor/uPlot.iife.min.js", "dom.js", "store.js", "window.js", "strips.js", "chart.js", "state.js", "verdict.js",
    "panels.js", "player.js", "main.js",
)  # fmt: skip
LIVE_SCRIPTS = ("buttons.js", "lessons.js", "live.js")
"""Only for a running stack: they talk to the server."""
_SAVED_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""A saved file fetches nothing, from nowhere."""
_PLACE = re.compile(r"<!-- (head|title|data|scripts) -->")


def live(data: dict[str, Any]) -> str:
    """The page of a running stack."""
    styles = "".join(f'<link rel="stylesheet" href="/static/{name}">' for name in STYLES)
    scripts = "".join(f'<script src="/static/{name}"></script>' for name in (*SCRIPTS, *LIVE_SCRIPTS))
    return _filled("Faultline", styles, data, scripts)


def saved(data: dict[str, Any]) -> str:
    """The page with everything inside: styles, scripts and a recorded run."""
    policy = f'<meta http-equiv="Content-Security-Policy" content="{_SAVED_POLICY}">'
    styles = "".join(f"<style>{_text(name)}</style>" for name in STYLES)
    scripts = "".join(f"<script>{_text(name)}</script>" for name in SCRIPTS)
    return _filled(f"{data['title']} - Faultline", policy + styles, data, scripts)


def _filled(title: str, head: str, data: dict[str, Any], scripts: str) -> str:
    # In HTML a script ends at the first </script>, in a string too.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    places = {
        "head": head,
        "title": html.escape(title),
        "data": f'<script type="application/json" id="data">{text}</script>',
        "scripts": scripts,
    }
    return _PLACE.sub(lambda found: places[found[1]], _text("index.html"))


def _text(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")
