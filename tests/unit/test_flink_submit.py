"""Conditions under which a submitted job is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from faultline.settings import Settings, SettingsError
from faultline.storage.objects import CREDENTIALS
from flink_job.rest import FlinkError, cause
from flink_job.submit import client_command, lost_its_leader, repeated
from flink_job.writable import require_writable_checkpoints
from tests.called import program

TRACE = """java.lang.RuntimeException: the task failed
\tat a.B.c(B.java:1)
Caused by: java.lang.Exception: could not restore
\tat a.B.d(B.java:2)
\t... 3 more
Caused by: org.apache.flink.util.StateMigrationException: must not be incompatible
\tat a.B.e(B.java:3)
"""


def test_the_innermost_cause_of_a_failure_is_named() -> None:
    assert cause(TRACE) == "org.apache.flink.util.StateMigrationException: must not be incompatible"
    assert cause("java.util.concurrent.TimeoutException: no broker\n\tat a.B.c(B.java:1)") == (
        "java.util.concurrent.TimeoutException: no broker"
    )


@pytest.mark.parametrize(
    ("causes", "expected"),
    [([], None), (["a", "a"], None), (["a", "b", "c", "d"], None), (["a", "b", "a", "a"], "a")],
)
def test_a_job_is_given_up_when_it_fails_for_one_reason_again(causes: list[str], expected: str | None) -> None:
    assert repeated(causes) == expected


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    settings = Settings(environ={"STACK_HOME": str(tmp_path)})
    require_writable_checkpoints(settings)
    assert list(settings.flink_notes.iterdir()) == []
    settings.flink_notes.rmdir()
    settings.flink_notes.touch()
    with pytest.raises(FlinkError, match=rf"{settings.flink_notes} cannot be written \(.*exists\).*make room"):
        require_writable_checkpoints(settings)


def test_a_store_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = "http://127.0.0.1:1"
    settings = Settings({"STACK_HOME": str(tmp_path), "STACK_DATA": "s3://bucket", "STACK_STORE_ENDPOINT": store})
    with pytest.raises(SettingsError, match=f"{CREDENTIALS} is not set"):
        require_writable_checkpoints(settings)
    (tmp_path / "key").write_text("[default]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv(CREDENTIALS, str(tmp_path / "key"))
    said = f"s3://bucket/checkpoints/flink cannot be written .the object store at {store} does not answer.*make room"
    with pytest.raises(FlinkError, match=said):
        require_writable_checkpoints(settings)


@pytest.mark.parametrize(
    ("checkpoint", "uri"),
    [("/a b/chk-1", "file:///a%20b/chk-1"), ("s3://bucket/a/chk-1", "s3://bucket/a/chk-1")],
)
def test_flink_is_given_the_uri_of_a_checkpoint(checkpoint: str, uri: str) -> None:
    command = client_command(Path("/job.py"), checkpoint, [])
    assert command[command.index("--fromSavepoint") + 1] == uri


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("org.apache.flink.runtime.rpc.exceptions.RecipientUnreachableException: Could not send message", True),
        ("Caused by: org.apache.flink.runtime.rpc.exceptions.FencingTokenException: Fencing token mismatch", True),
        ("java.lang.RuntimeException: Python process exits with code: 1", False),
    ],
)
def test_a_submission_is_repeated_only_when_the_leader_has_changed(line: str, expected: bool) -> None:
    assert lost_its_leader(["Job has not been submitted", line]) is expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "--place", "own-operator"], "words after -- are for the program of --program FILE.py"),
        (["--program", "nowhere.py"], "--program: there is no file nowhere.py"),
    ],
)
def test_a_mistake_about_the_program_ends_with_code_2(words: list[str], message: str) -> None:
    done = program("flink_job.submit", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith(message)
