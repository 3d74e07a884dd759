"""Files of the clone that other programs read: workflows, a development container, a citation, an entry point."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import yaml

from faultline.settings import ROOT, read_env_file
from faultline.stack.services import TABLE
from tests.called import program, script


def workflow() -> dict[str, Any]:
    """The jobs of CI."""
    jobs: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    return jobs


def test_both_jobs_run_the_one_ci_command_on_the_machine_of_the_readme() -> None:
    jobs = workflow()
    assert {name: job["steps"][-1]["run"] for name, job in jobs.items()} == {
        "ci": "bash .ci/run",
        "full": "bash .ci/run full ${{ matrix.shard }}/10",
    }
    assert jobs["full"]["strategy"]["matrix"]["shard"] == list(range(1, 11))
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


def test_the_command_is_the_script() -> None:
    """An installed command `faultline` calls a function of this module."""
    entry = "faultline.verbs.entry"
    assert program(entry, "walkthroughs").stdout == script("walkthroughs.sh").stdout != ""
    assert "scripts/up.sh" in program(entry).stdout
    refused = program(entry, "../.ci/engine")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "faultline: there is no verb '../.ci/engine'; `faultline help` lists them\n"
