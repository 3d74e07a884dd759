"""Create the topics of the stack that do not exist yet.

Usage: python -m broker.topics [--wait-seconds N]

Exit codes: 0 all topics exist with the number of partitions in `.env`, 2 they do not.
"""

from __future__ import annotations

import argparse
import sys
import time

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

from contract.settings import Settings, SettingsError


class TopicError(Exception):
    """The topics cannot be created as configured; the message names the cause and the next step."""


def connect(bootstrap: str, wait_seconds: float) -> KafkaAdminClient:
    """Connect to the broker, trying for `wait_seconds`. Raises TopicError when it does not answer in time."""
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            return KafkaAdminClient(bootstrap_servers=bootstrap)
        except (KafkaError, OSError) as error:
            if time.monotonic() >= deadline:
                raise TopicError(
                    f"no broker answers at {bootstrap} within {wait_seconds:.0f} s ({type(error).__name__}); "
                    "is the service kafka up?"
                ) from error
            time.sleep(0.5)


def create_topics(admin: KafkaAdminClient, settings: Settings) -> list[str]:
    """Create what is missing and return the names of the topics created.

    Raises TopicError when a topic exists with another number of partitions: the order of a key's visits,
    and with it every comparison, depends on that number.
    """
    partitions = settings.number("TOPIC_PARTITIONS")
    # A new topic is one line in .env.
    names = [value for name, value in settings.values.items() if name.endswith("_TOPIC")]
    created = []
    for name in names:
        topic = NewTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            # Record timestamps are event times: a time limit would delete a replayed day under its readers.
            topic_configs={"retention.ms": settings.text("TOPIC_RETENTION_MS"), "retention.bytes": "-1"},
        )
        try:
            admin.create_topics([topic])
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
    parser = argparse.ArgumentParser(prog="broker.topics", description="Create the topics that do not exist yet.")
    parser.add_argument("--wait-seconds", type=float, default=60, help="how long to wait for the broker (default 60)")
    arguments = parser.parse_args()
    try:
        settings = Settings()
        created = create_topics(connect(settings.bootstrap, arguments.wait_seconds), settings)
    except KeyboardInterrupt:
        return 130
    except (TopicError, SettingsError) as error:
        print(f"topics: {error}", file=sys.stderr)
        return 2
    print(f"topics: created {', '.join(created) if created else 'none, all exist'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
