"""The right end of an open transaction, case by case."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from faultline.inspector.transactions.__main__ import arguments_of
from faultline.inspector.transactions.advice import advise, allow
from faultline.inspector.transactions.errors import Refused
from faultline.inspector.transactions.jobs import job_of, job_runs
from faultline.inspector.transactions.model import (
    ABORT,
    COMMIT,
    UNKNOWN,
    WAIT,
    Found,
    Held,
    OpenTransaction,
    Promise,
    Stop,
    as_document,
)
from faultline.inspector.transactions.render import render
from faultline.settings import Settings
from faultline.storage.objects import CREDENTIALS
from tests.called import refused

PROMISE = Promise("a" * 32, 12, "checkpoints/flink/a/chk-12")
ID = "visit_windows-visit_windows-0-1"


def opened(**changed: object) -> OpenTransaction:
    facts: dict[str, object] = {"job": "windows", "job_runs": False, "state": "Ongoing", "transactional_id": ID}
    facts |= changed
    return OpenTransaction(producer_id=7, epoch=3, since=1_000, ends_at=901_000, held=[Held(0, 40)], **facts)  # type: ignore[arg-type]


CASES = [
    (COMMIT, opened(promises=[PROMISE]), []),
    (COMMIT, opened(promises=[PROMISE], job_runs=None), []),
    (COMMIT, opened(promises=[PROMISE]), ["chk-11 cannot be read"]),
    (COMMIT, opened(promises=[PROMISE], job=""), []),
    (WAIT, opened(promises=[PROMISE], job_runs=True), []),
    (WAIT, opened(promises=[PROMISE], state="PrepareCommit"), []),
    (WAIT, opened(state="PrepareAbort"), []),
    (WAIT, opened(job_runs=True), []),
    (WAIT, opened(job_runs=True), ["chk-11 cannot be read"]),
    (ABORT, opened(), []),
    (UNKNOWN, opened(), ["chk-11 cannot be read"]),
    (UNKNOWN, opened(job_runs=None), []),
    (UNKNOWN, opened(job=""), []),
    (UNKNOWN, opened(transactional_id="", state=""), []),
]


@pytest.mark.parametrize(("right", "transaction", "unreadable"), CASES)
def test_the_advice(right: str, transaction: OpenTransaction, unreadable: list[str]) -> None:
    advise(transaction, unreadable)
    assert transaction.right == right
    assert transaction.why
    if right in (COMMIT, ABORT):
        allow(right, transaction)


def test_a_promised_transaction_is_never_aborted_and_another_never_committed() -> None:
    facts = itertools.product(
        ("Ongoing", "PrepareCommit", "PrepareAbort", ""), (True, False, None), ("windows", ""), (ID, ""), ([], ["x"])
    )
    for state, runs, job, name, unreadable in facts:
        promised = opened(state=state, job_runs=runs, job=job, transactional_id=name, promises=[PROMISE])
        free = opened(state=state, job_runs=runs, job=job, transactional_id=name)
        for transaction, act in ((promised, ABORT), (free, COMMIT)):
            advise(transaction, list(unreadable))
            assert transaction.right != act
            with pytest.raises(Refused):
                allow(act, transaction)


def test_of_another_programs_transaction_the_user_decides() -> None:
    foreign = opened(job="")
    advise(foreign, [])
    allow(ABORT, foreign)


def test_the_job_by_the_beginning_of_the_id() -> None:
    settings = Settings({"STACK_CLASSIC_JOB_NAME": "tutorial"})
    assert job_of(ID, "visit_windows", settings) == "windows"
    assert job_of("tutorial-visit_windows-0-1", "visit_windows", settings) == "classic"
    assert job_of("visit_windows-visits_late-0-1", "visit_windows", settings) == ""
    assert job_of("", "visit_windows", settings) == ""


def test_without_a_jobmanager_no_job_runs() -> None:
    # Port 1 of this machine refuses connections.
    assert job_runs("windows", Settings({"STACK_FLINK_REST": "http://127.0.0.1:1"})) is False
    assert job_runs("windows", Settings({"STACK_FLINK_REST": "http://127.0.0.1:1,http://127.0.0.1:1"})) is None


def test_the_words() -> None:
    transaction = opened(promises=[PROMISE])
    advise(transaction, [])
    found = Found("visit_windows", [Stop(0, 40, 52), Stop(1, 9, 9)], [transaction], ["chk-3 is damaged"])
    text = render(found, now=61.0)
    for words in (
        "1 transaction open; readers of committed records stop in partition 0 at 40 of 52\n",
        f"transaction {ID}\n",
        "producer 7, epoch 3, Ongoing\n",
        "open since 1970-01-01T00:00:01.000Z (60 s)\n",
        "the broker aborts it at 1970-01-01T00:15:01.000Z",
        f"prepared for checkpoint 12 of job {'a' * 32}: checkpoints/flink/a/chk-12\n",
        f"scripts/transactions.sh visit_windows --commit {ID} --apply\n",
        "not read: chk-3 is damaged",
    ):
        assert words in text, text
    assert as_document(found)["behind"] == 12
    assert "no transaction is open" in render(Found("visits", [Stop(0, 5, 5)], []), now=0.0)


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("nowhere", "--checkpoints nowhere is not a folder"),
        (
            "s3://bucket/x",
            "s3://bucket/x cannot be read: the object store at http://127.0.0.1:1 does not answer",
        ),
    ],
)
def test_checkpoints_that_are_not_there_are_not_taken_for_none(
    folder: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv(CREDENTIALS, str(tmp_path / "key"))
    monkeypatch.setenv("STACK_STORE_ENDPOINT", "http://127.0.0.1:1")
    assert said in refused(arguments_of, "visit_windows", "--checkpoints", folder)


def test_a_folder_of_checkpoints_is_taken(tmp_path: Path) -> None:
    assert arguments_of(["visit_windows", "--checkpoints", str(tmp_path)]).checkpoints == tmp_path
