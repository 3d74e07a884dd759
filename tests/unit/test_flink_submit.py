"""When a submitted job is given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.settings import Settings
from flink_job.rest import FlinkError
from flink_job.run_file import require_room
from flink_job.submit import cause, repeated

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
    require_room(settings)
    assert list(settings.flink_checkpoints.iterdir()) == []
    settings.flink_checkpoints.rmdir()
    settings.flink_checkpoints.touch()
    with pytest.raises(FlinkError, match=rf"{settings.flink_checkpoints} cannot be written \(.*exists\).*make room"):
        require_room(settings)
