"""Files of the clone that other programs read: workflows, a development container, a citation, an entry point."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import yaml

from faultline.settings import ROOT, read_env_file
from faultline.stack.services import TABLE


def workflow() -> dict[str, Any]:
    """The jobs of CI."""
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    return jobs


def test_both_jobs_run_the_one_ci_command_on_the_machine_of_the_readme() -> None:
    jobs = workflow()
    assert {name: job["steps"][-1]["run"] for name, job in jobs.items()} == {
        "ci": "bash .ci/run",
        "full": "bash .ci/run full ${{ matrix.shard }}/8",
    }
    assert jobs["full"]["strategy"]["matrix"]["shard"] == list(range(1, 9))
    suite = {job["container"]["image"] for job in jobs.values()}
    assert suite == {f"{read_env_file(ROOT / '.env')['BASE_IMAGE'].partition('-')[0].partition('@')[0]}"}


def test_the_development_container_forwards_the_pages_of_the_stack() -> None:
    settings = read_env_file(ROOT / ".env")
    container = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text(encoding="utf-8"))
    pages = {int(settings[row.published]) for row in TABLE if row.page and row.published and not row.profiles}
    assert set(container["forwardPorts"]) == {int(port) for port in container["portsAttributes"]} == pages
    [packages] = {job["steps"][0]["run"] for job in workflow().values()}
    assert container["onCreateCommand"] == packages


def test_all_name_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (citation["version"], citation["license"]) == (project["version"], project["license"])
    assert f"\n## {project['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def entered(*words: str) -> subprocess.CompletedProcess[str]:
    """Run the function that an installed command `faultline` calls."""
    return subprocess.run(
        [sys.executable, "-m", "faultline.verbs.entry", *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_is_the_script(tmp_path: Path) -> None:
    listed = subprocess.run(
        [ROOT / "scripts" / "walkthroughs.sh"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert entered("walkthroughs").stdout == listed.stdout
    assert "scripts/up.sh" in entered().stdout
    refused = entered("../.ci/engine")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "faultline: there is no verb '../.ci/engine'; `faultline help` lists them\n"
