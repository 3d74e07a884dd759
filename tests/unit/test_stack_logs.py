"""The last lines of a service's log, with the part that its keeper has put away when it was long."""

from __future__ import annotations

from pathlib import Path

from faultline.stack.backends.local import LocalBackend
from faultline.stack.home import Home
from faultline.stack.keeper import put_away
from faultline.stack.services import service
from faultline.stack.settings import load


def test_a_log_that_was_put_away_is_read_as_far_as_lines_are_asked_for(tmp_path: Path) -> None:
    settings, home = load({"STACK_HOME": str(tmp_path)}, {}, {}), Home(tmp_path)
    backend, row = LocalBackend(settings, home), service("kafka", settings.values)
    log = home.state / "logs" / "kafka.log"
    assert backend.log(row, 5) == ""
    log.parent.mkdir(parents=True)
    log.write_text("4\n5\n", encoding="utf-8")
    assert backend.log(row, 5) == "4\n5"
    put_away(log).write_text("1\n2\n3\n", encoding="utf-8")
    assert backend.log(row, 2) == "4\n5"
    assert backend.log(row, 4) == "2\n3\n4\n5"
    assert backend.log(row, 100) == "1\n2\n3\n4\n5"
