"""The guided mode: lessons in steps, for a class that looks at the page together.

A step has words, and may have an action of `faultline/page/actions.py`; what to look for comes before the button.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class LessonStep:
    """One step: what it says, and the name of the action that it offers, if any."""

    words: str
    action: str = ""


@dataclass(frozen=True)
class Lesson:
    """A lesson, and the walkthrough that proves the same by itself."""

    title: str
    steps: tuple[LessonStep, ...]
    walkthrough: str


LESSONS = (
    Lesson(
        "A TaskManager dies",
        (
            LessonStep("Each strip is a partition of the topic visits. Its end moves right: visits come in."),
            LessonStep(
                "The triangle above is where Flink reads. The filled diamond is what its newest checkpoint holds. "
                "The line between them is at risk: a crash takes Flink back to the diamond.",
            ),
            LessonStep(
                "Now the TaskManager is killed. Watch the triangle, and the dotted end of visit_windows: what is "
                "there is not committed, and no reader gets it.",
                "taskmanager-kill",
            ),
            LessonStep(
                "It is started again. The job goes back to the diamond; the hatched stretch is what it reads again.",
                "taskmanager-kill-repair",
            ),
            LessonStep(
                "Has a reader of committed windows seen anything twice? The verdict reads and counts all records. "
                "Before that, the generator stops and the open windows are closed.",
                "judge",
            ),
        ),
        "scripts/walkthroughs/04_kill_a_taskmanager.sh",
    ),
    Lesson(
        "An older checkpoint",
        (
            LessonStep("First the generator has to run: an earlier verdict has stopped it.", "generator-start"),
            LessonStep(
                "Each diamond is a retained checkpoint. Wait until there are five. A restore from the newest one "
                "repeats no output. What about an older one?"
            ),
            LessonStep("The job is cancelled. Its checkpoints stay.", "job-cancel"),
            LessonStep(
                "Choose an older checkpoint, and restore from it. The hatched stretch is read again; its windows "
                "were committed before.",
                "restore",
            ),
            LessonStep("The verdict counts the windows that were written twice.", "judge"),
            LessonStep(
                "These windows stay in the topic, so each later verdict is violated, too. To go on, remove all topics, "
                "checkpoints and outputs of this stack, and start it again. The page then begins again by itself.",
                "reset",
            ),
        ),
        "scripts/walkthroughs/03_with_and_without_a_checkpoint.sh",
    ),
    Lesson(
        "Spark's latest commit is deleted",
        (
            LessonStep("First the generator has to run: an earlier verdict has stopped it.", "generator-start"),
            LessonStep(
                "Below each strip: the end of Spark's newest committed batch, and every few seconds, dashed, the "
                "batch that is planned.",
            ),
            LessonStep(
                "The synchronizer stops, and its latest commit is deleted. The plan, its offsets file, stays.",
                "commit-deleted",
            ),
            LessonStep(
                "It starts again: a plan without a commit runs again, with its old range. The hatched stretch is "
                "read again.",
                "commit-deleted-repair",
            ),
            LessonStep(
                "The file sink knows the batch by its number, and writes nothing twice. Does the verdict agree?",
                "judge",
            ),
        ),
        "scripts/walkthroughs/13_failure_before_the_commit.sh",
    ),
)  # fmt: skip


def as_json() -> list[dict[str, object]]:
    """For the page."""
    return [asdict(lesson) for lesson in LESSONS]
