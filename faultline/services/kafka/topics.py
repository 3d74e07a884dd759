"""Create the topics of the stack that do not exist yet.

Usage: python -m faultline.services.kafka.topics [--wait-seconds N]

Exit codes: 0 all topics exist with the number of partitions in `.env`, 2 they do not.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from faultline.command import CommandError, quiet_imports, run

if __name__ == "__main__":
    quiet_imports()

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from faultline.formats.visit import MOST_BYTES_OF_A_COPY
from faultline.settings import Settings
from faultline.waiting import attempts

_ATTEMPT_MS = 3_000


class TopicError(CommandError):
    """The topics cannot be created as configured; the message names the cause and the next step."""


def connect(bootstrap: str, brokers: int, wait_seconds: float) -> KafkaAdminClient:
    """Connect to so many brokers, trying for `wait_seconds`: a topic with a replica on each needs them all.

    Raises TopicError when they do not answer in time.
    """
    admin: Any = None
    for _ in attempts(wait_seconds, 0.5):
        try:
            admin = admin or KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=_ATTEMPT_MS)
            # A fenced one is known, and does not answer.
            found = sum(not each.get("is_fenced", False) for each in admin.describe_cluster()["brokers"])
            if found >= brokers:
                return admin
            problem = f"{found} of {brokers} brokers answer at {bootstrap}"
        except (KafkaError, OSError) as error:
            problem = f"no broker answers at {bootstrap} ({type(error).__name__})"
    raise TopicError(f"{problem} after {wait_seconds:.0f} s; scripts/status.sh shows which broker does not run")


def new_topic(name: str, settings: Settings) -> NewTopic:
    """A topic of the stack as it is created."""
    # Record timestamps are event times: a time limit would delete a replayed day under its readers.
    config = {"retention.ms": settings.text("TOPIC_RETENTION_MS"), "retention.bytes": "-1"}
    if name != settings.text("VISITS_TOPIC"):
        # A copy of the largest visit has headers more, and is not compressed as the original may be.
        config["max.message.bytes"] = str(MOST_BYTES_OF_A_COPY)
    return NewTopic(
        name=name,
        num_partitions=settings.number("TOPIC_PARTITIONS"),
        replication_factor=settings.replicas,
        topic_configs=config,
    )


def create_topics(admin: KafkaAdminClient, settings: Settings) -> list[str]:
    """Create what is missing and return the names of the topics created.

    Raises TopicError when a topic exists with another number of partitions: the order of a key's visits,
    and with it every comparison, depends on that number.
    """
    partitions = settings.number("TOPIC_PARTITIONS")
    # A new topic is created by its line in .env; CONTRIBUTING.md names the lists that also have it.
    names = [value for name, value in settings.values.items() if name.endswith("_TOPIC")]
    created = []
    for name in names:
        try:
            admin.create_topics([new_topic(name, settings)])
            created.append(name)
        except TopicAlreadyExistsError:
            pass
    # A topic just created has the requested partitions; the broker may not describe it yet.
    for description in admin.describe_topics([name for name in names if name not in created]):
        found = len(description["partitions"])
        if found != partitions:
            raise TopicError(
                f"topic {description['name']} has {found} partitions, TOPIC_PARTITIONS in .env says {partitions}; "
                f"set TOPIC_PARTITIONS to {found}, or start clean with scripts/down.sh --wipe"
            )
    return created


def main() -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="faultline.services.kafka.topics", description="Create the topics that do not exist yet."
    )
    parser.add_argument("--wait-seconds", type=float, default=60, help="how long to wait for the broker (default 60)")
    arguments = parser.parse_args()
    try:
        settings = Settings()
        admin = connect(settings.bootstrap, settings.replicas, arguments.wait_seconds)
        created = create_topics(admin, settings)
    except KafkaError as error:
        raise TopicError(f"the topics cannot be created ({error}); see scripts/logs.sh kafka") from None
    print(f"topics: created {', '.join(created) if created else 'none, all exist'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    run("topics", main)
