"""The stack as a whole: up and down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from faultline.messages import say
from faultline.stack.backend import PAUSED, RUNNING
from faultline.stack.errors import StackError
from faultline.stack.home import Up, names
from faultline.stack.settings import OF_THE_HOST

if TYPE_CHECKING:
    from faultline.stack.stack import Stack
from faultline.stack.acts.service import check_flags, start


def up(stack: Stack) -> None:
    """Start all that does not run, and the Flink job when there is none."""
    stack.warn()
    running = stack.is_up() and all(stack.backend.state(row) in (RUNNING, PAUSED) for row in stack.services)
    say(f"backend: {stack.backend.name} ({stack.reason})")
    if stack.profile:
        say(f"profile: {stack.profile} (.env.{stack.profile})")
    stack.home.require_topics_on(stack.topics)
    # Before the home is marked: a start that is refused changes nothing.
    stack.backend.check_capacity()
    if not running:
        stack.backend.prepare()
        _require_store(stack)
        for row in stack.services:
            check_flags(stack, row, stack.settings.values.get(f"{row.name.upper()}_ARGS", "").split())
    stack.home.claim(stack.topics)
    stack = stack.with_backend()
    # Running services are left alone; the job is submitted when there is none.
    stack.backend.up()
    stack.home.remember(Up(stack.backend.name, stack.settings.chosen))
    if running:
        say("every service was up already")
        _say_what_differs(stack)
    pages = "  ".join(
        f"{row.page} http://{stack.address}:{stack.settings.values[row.published]}"
        for row in stack.services
        if row.page and row.published
    )
    say(f"the stack is up: {pages}  Kafka {stack.settings.values['KAFKA_BOOTSTRAP']}")
    page = f"http://{stack.address}:{stack.settings.values['PAGE_PORT']}"
    say(f"next: open {page}, run scripts/demo.sh; scripts/status.sh tells how it is, scripts/down.sh stops it")


def start_brokers(stack: Stack) -> None:
    """Start the brokers of a stack, which need not be up; its folders are marked as at its first start."""
    stack.home.require_topics_on(stack.topics)
    stack.backend.prepare()
    stack.home.claim(stack.topics)
    stack = stack.with_backend()
    for row in stack.copies("kafka"):
        start(stack, row, ())


def _require_store(stack: Stack) -> None:
    """Raise StackError when the data is to be in an existing store that cannot be written to."""
    settings = stack.settings.typed
    if settings.has_store and not settings.has_own_store:
        done = stack.backend.tool(["python", "-m", "faultline.services.store.check"])
        if done.returncode:
            # The check has printed the reason.
            raise StackError("", done.returncode)


def _say_what_differs(stack: Stack) -> None:
    """Print which running services have other settings than their next start would give them."""
    for row in stack.services:
        theirs = stack.backend.settings_of(row)
        changed = [
            f"{name} is {theirs[name] or 'empty'}, now {value or 'empty'}"
            for name, value in sorted(stack.settings.values.items())
            if name in theirs and theirs[name] != value and name not in OF_THE_HOST and not name.endswith("_HOST")
        ]
        if changed and stack.backend.state(row) == RUNNING:
            say(f"note: {row.name} runs with other settings ({'; '.join(changed)}); they apply at its next start")


def down(stack: Stack, *, wipe: bool) -> None:
    """Stop the whole stack; with `wipe` also remove what it owns. Raises StackError when it is on the other backend."""
    _require_holder(stack, "scripts/down.sh --wipe" if wipe else "scripts/down.sh")
    if wipe:
        _name_what_goes(stack)
    try:
        removed = stack.backend.down(wipe=wipe)
    except KeyboardInterrupt:
        say(f"interrupted: a part of the stack may still run; scripts/down.sh{' --wipe' if wipe else ''} ends it")
        raise
    stack.home.forget()
    if removed:
        say(f"removed: topics, {names(removed)}")
    say(f"the stack is down (backend {stack.backend.name})")


def _require_holder(stack: Stack, command: str) -> None:
    marker, note = stack.home.marker(), stack.home.up()
    for holder in {note.backend if note else "", marker.topics.backend if marker else ""} - {"", stack.backend.name}:
        raise StackError(f"the stack in {stack.home.root} is on backend {holder}; {command} --backend {holder} ends it")


def _name_what_goes(stack: Stack) -> None:
    """Print what --wipe removes."""
    folders = stack.home.marked()
    if folders:
        say(f"--wipe removes the topics of this stack, and: {names(folders)}")
    else:
        say(f"nothing in {stack.home.root} belongs to a stack; no folder is removed")
    marker = stack.home.marker()
    # The settings of a stack that is down may have other data than its topics.
    data = stack.data or (marker.topics.data if marker else "")
    if marker is not None and data and not stack.home.has_store:
        say(
            f"checkpoints and output in {data} stay, and name offsets of topics that are gone: "
            "the next start needs another DATA"
        )
