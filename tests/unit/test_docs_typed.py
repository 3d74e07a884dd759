"""Every command of a page's bash blocks is typed by a test, or there is a reason why none does."""

from __future__ import annotations

import ast
import functools
import re

from tests.tree import PAGES, commands, files, require_none, text_of

STACK = "tests/stack"
TYPED = {
    "STACK_FLINK_TASKMANAGERS=2 STACK_FLINK_JOBMANAGERS=2 scripts/up.sh": f"{STACK}/test_spares.py",
    "STACK_KAFKA_BROKERS=3 scripts/up.sh": f"{STACK}/test_three_brokers.py",
    "STACK_SPARK_WORKERS=2 scripts/up.sh": f"{STACK}/test_spark_workers.py",
    "STACK_SPARK_WORKERS=3 scripts/up.sh --profile cluster": f"{STACK}/test_cluster_proof.py",
    "STACK_FLINK_STATE_BACKEND=rocksdb scripts/up.sh": f"{STACK}/test_state_in_rocksdb.py",
    "STACK_METRICS=1 scripts/up.sh": f"{STACK}/test_metrics.py",
    "STACK_FLINK_UNALIGNED=true scripts/up.sh": f"{STACK}/test_unaligned.py",
    "docker compose up": f"{STACK}/test_compose.py",
    "docker compose exec": f"{STACK}/test_compose.py",
    "scripts/consume.sh": f"{STACK}/test_docs_commands.py",
    "scripts/demo.sh --profile cluster": f"{STACK}/test_cluster_proof.py",
    "scripts/demo.sh": f"{STACK}/test_main_walkthrough.py",
    "scripts/devices_file_stream.sh --input": f"{STACK}/test_labs.py",
    "scripts/down.sh --wipe": f"{STACK}/running_stack.py",
    "scripts/faults.sh list": "tests/unit/test_faults.py",
    "scripts/faults.sh run": f"{STACK}/running_stack.py",
    "scripts/flink_cancel.sh": f"{STACK}/test_docs_commands.py",
    "scripts/flink_restore.sh": f"{STACK}/test_docs_commands.py",
    "scripts/inspect.sh s3://faultline/": f"{STACK}/test_cluster_profile.py",
    "scripts/page.sh --replay": "tests/unit/test_page_replay.py",
    "scripts/page.sh": f"{STACK}/test_page_live.py",
    "scripts/pipeline.sh check plain_consumer": f"{STACK}/test_pipelines.py",
    "scripts/pipeline.sh faults plain_consumer kill": f"{STACK}/test_pipelines.py",
    "scripts/pipeline.sh run plain_consumer": f"{STACK}/test_pipelines.py",
    "scripts/pipeline.sh soak plain_consumer --minutes 2": f"{STACK}/test_pipelines.py",
    "scripts/pipeline.sh verdict plain_consumer --json": f"{STACK}/test_pipelines.py",
    "scripts/sbom.sh": f"{STACK}/test_sbom.py",
    "scripts/soak.sh --minutes": f"{STACK}/test_soak.py",
    "scripts/soak.sh --profile cluster": f"{STACK}/test_cluster_proof.py",
    "scripts/up.sh --profile cluster": f"{STACK}/test_cluster_profile.py",
    "scripts/up.sh": f"{STACK}/test_main_walkthrough.py",
    "scripts/walkthroughs.sh": "tests/unit/test_walkthroughs.py",
    "scripts/walkthroughs/11_micro_batch_restart.sh": f"{STACK}/test_labs.py",
    "scripts/walkthroughs/19_more_executors.sh": f"{STACK}/test_cluster_proof.py",
}
"""Beginning of each command, and the file whose strings have the command's words."""
UNTYPED = {
    "benchmarks/": "minutes to hours; the page says which run its figures are of",
    "docker pull": "it needs a registry of images",
    "docker run": "no test yet; it lists the packages of an image that only the Compose tier builds",
    "pipx ": "it needs a list of vulnerabilities",
    "trivy ": "it needs a list of vulnerabilities",
    "STACK_STORE_ENDPOINT=https://YOUR-OBJECT-STORE": "it needs a store of the reader's",
    "scripts/test.sh": "it runs the tests",
    "python -m tests.record": "test_tiers.py calls its functions",
    "scripts/check.sh": "scripts/test.sh calls its function",
    "scripts/faults.sh all": "hours; test_faults.py and test_cluster_proof.py run its rows one by one",
    "scripts/deploy.sh": "test_deploy.py and test_deploy_sizing.py call its program",
    "scripts/transactions.sh": "test_transactions.py calls its program",
    "scripts/inspect.sh checkpoints/flink --against windows": "test_inspector_against.py calls its program",
    "scripts/inspect.sh checkpoints/flink --against flink_job/": "test_docs_commands.py takes it from the page",
    "STACK_DATA=s3://faultline scripts/up.sh": "the profile cluster has this setting: test_cluster_profile.py",
    "PORT_OFFSET=100 scripts/up.sh": "a second stack's ports are those of any test; test_stack_settings.py adds it up",
    "STACK_FLINK_JOBMANAGERS=2 docker compose": "no test yet; in test_cluster_profile.py scripts/up.sh chooses it",
    "docker compose --profile metrics": "no test yet; in test_metrics.py scripts/up.sh chooses it",
    "STACK_DATA=s3://faultline docker compose": "no test yet; in test_cluster_profile.py scripts/up.sh chooses it",
}
"""Beginning of each command that no test types, and the reason why."""


@functools.cache
def strings(file: str) -> frozenset[str]:
    """The strings of a file's code, and the names of its keyword arguments; not its comments and docstrings."""
    tree = ast.parse(text_of(file))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    nodes = [node for node in ast.walk(tree) if id(node) not in alone]
    found = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return frozenset(found | {node.arg for node in nodes if isinstance(node, ast.keyword) and node.arg})


def is_in(word: str, file: str) -> bool:
    """Return whether a file has a word of a command, as tests write it."""
    if setting := re.fullmatch(r"STACK_([A-Z_]+)=(.+)", word):
        return set(setting.groups()) <= strings(file)
    if word.endswith(".sh"):
        name = word.removeprefix("scripts/")
        # A walkthrough goes by its number and name.
        lesson = name.removeprefix("walkthroughs/").removesuffix(".sh") if "/" in name else name
        return not strings(file).isdisjoint({word, name, lesson})
    if word.startswith("s3://"):
        return any(each.startswith(word) for each in strings(file))
    return word in strings(file)


def test_the_test_that_types_a_command_has_its_words() -> None:
    started = f"{STACK}/running_stack.py"
    require_none(
        f"{file}: it does not type {word} of {command}"
        for command, file in TYPED.items()
        for word in command.split()
        # Its fixture `stack` starts one with the settings of the file.
        if not is_in(word, file) and not ("\nSETTINGS = {" in text_of(file) and is_in(word, started))
    )


def test_every_command_of_a_block_is_typed_by_a_test_or_there_is_a_reason() -> None:
    known = [*TYPED, *UNTYPED]
    found = {(page, command) for page in PAGES for command in commands(page)}
    require_none(f"{page}: {command}" for page, command in sorted(found) if not command.startswith(tuple(known)))
    # The longest that fits is meant.
    used = {max((each for each in known if command.startswith(each)), key=len) for _, command in found}
    require_none(f"no page has {each}" for each in known if each not in used)


def test_every_test_that_a_reason_names_exists() -> None:
    names = set(re.findall(r"test_\w+\.py", " ".join(UNTYPED.values())))
    there = {file.rpartition("/")[2] for file in files()}
    require_none(sorted(names - there))
