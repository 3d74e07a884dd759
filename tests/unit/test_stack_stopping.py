"""Services of the local backend are stopped in turn, and the copies of one at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from faultline.settings import ROOT
from faultline.stack.backends.local import LocalBackend
from faultline.stack.home import Home, Topics
from faultline.stack.processes import keep, of_stack
from faultline.stack.settings import load
from faultline.waiting import wait_until

# Ends only when all three have got SIGTERM, as a broker that needs a majority for its end.
WAITS_FOR_ALL = """
ends() {
  touch "$0.asked"
  until [ -e one.asked ] && [ -e two.asked ] && [ -e three.asked ]; do sleep 0.05; done
  exit 0
}
trap ends TERM
touch "$0.ready"
while true; do sleep 0.05; done
"""


def test_brokers_end_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = Home(tmp_path / "home")
    mark = home.claim(Topics("local", 3)).stack
    backend = LocalBackend(load({"STACK_KAFKA_BROKERS": "3", "STACK_HOME": str(home.root)}, {}, {}), home)
    records = home.state / "run"
    records.mkdir()
    words = {"kafka": "one", "kafka-2": "two", "kafka-3": "three"}
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    keepers = []
    for name, word in words.items():
        flags = ["--log", str(tmp_path / f"{word}.log"), "--record", str(records / f"{name}.json")]
        keepers.append(keep([*flags, "bash", "-c", WAITS_FOR_ALL, word], environ, mark, name, tmp_path))
    wait_until(lambda: len(list(tmp_path.glob("*.ready"))) == len(words), "all of them", seconds=60)
    backend.down(wipe=False)
    for keeper in keepers:
        keeper.wait(timeout=60)
    assert of_stack(mark) == []
    assert "SIGKILL" not in capsys.readouterr().err
    codes = [json.loads((records / f"{name}.json").read_text()).get("exit_code") for name in words]
    # A keeper may end with its stack before it has written the code.
    assert set(codes) <= {0, None}
