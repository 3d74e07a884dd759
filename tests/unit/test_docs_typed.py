"""Every command of a page's bash blocks is typed by a test, or there is a reason why not."""

from __future__ import annotations

import re

from tests.unit.test_docs import PAGES, ROOT, commands

TYPED = {
    "scripts/demo.sh": "test_main_walkthrough.py",
    "scripts/test.sh": "it runs this test",
    "scripts/check.sh": "scripts/test.sh runs it",
    "scripts/sbom.sh": "test_sbom.py",
    "scripts/walkthroughs": "test_labs.py, and test_walkthroughs.py for the list",
    "scripts/devices_file_stream.sh": "test_labs.py",
    "docker-compose": "test_compose.py",
    "benchmarks/": "minutes to hours; the page says which run its figures are of",
    "docker ": "needs a registry of images",
    "pipx ": "needs a list of vulnerabilities",
    "trivy ": "needs a list of vulnerabilities",
    "scripts/faults.sh": "test_faults.py",
    "scripts/soak.sh": "test_soak.py",
    "scripts/page.sh": "test_page_replay.py",
    "scripts/deploy.sh": "test_deploy.py and test_deploy_sizing.py",
    "kubectl ": "needs a Kubernetes cluster",
    "scripts/up.sh": "test_stack_layer.py, test_spares.py, test_three_brokers.py, test_spark_workers.py, "
    "test_cluster_profile.py",
    "scripts/down.sh": "every test of a stack ends with it",
    "scripts/consume.sh": "test_docs_commands.py",
    "scripts/inspect.sh": "test_docs_commands.py, test_inspector_against.py",
    "scripts/flink_cancel.sh": "test_docs_commands.py",
    "scripts/flink_restore.sh": "test_docs_commands.py",
    "scripts/transactions.sh": "test_docs_commands.py, test_transactions.py",
}
"""How each command of a block begins: the test that types it, or the reason why none can."""


def test_every_command_of_a_block_is_typed_by_a_test() -> None:
    found = {command for page in PAGES for command in commands(page)}
    plain = {re.sub(r"^([A-Z_]+=\S+ )+", "", command) for command in found}
    assert {command for command in plain if not command.startswith(tuple(TYPED))} == set()


def test_every_test_named_here_exists() -> None:
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert set(re.findall(r"test_\w+\.py", " ".join(TYPED.values()))) - there == set()
