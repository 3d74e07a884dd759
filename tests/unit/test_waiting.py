"""Waits: the first true answer, the last attempt at the limit, and words for a wait that takes long."""

import pytest

from faultline import waiting
from faultline.waiting import TimedOut, attempts, wait_until


def test_the_first_true_answer_is_returned_despite_errors_before() -> None:
    answers = iter([0, OSError(), None, 7, 8])

    def look() -> int | None:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    assert wait_until(look, "a number", seconds=20, every=0, despite=(OSError,)) == 7
    assert list(answers) == [8]


def test_another_error_ends_the_wait() -> None:
    def look() -> bool:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        wait_until(look, "a number", seconds=20, despite=(OSError,))


def test_there_is_one_attempt_without_time_and_a_last_one_at_the_limit() -> None:
    assert len(list(attempts(0))) == len(list(attempts(-1))) == 1
    assert len(list(attempts(0.05, every=60))) == 2


def test_the_error_names_limit_and_reason_after_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(waiting, "_FIRST_WORD_SECONDS", 0.0)
    reasons = iter(["no broker"])
    with pytest.raises(TimedOut, match=r"^timed out after 0\.1 s waiting for the topic: no broker$"):
        wait_until(lambda: False, "the topic", seconds=0.1, every=0.01, explain=lambda: next(reasons))
    assert capsys.readouterr().err == "   waiting for the topic: 0 s\n"
