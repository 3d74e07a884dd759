"""Leaders, as each broker names them itself: a broker that is cut off from the others names former leaders.

Usage: python -m faultline.probes.leaders               by the number of each broker: the leaders of the visits'
partitions, or
                                               null when it does not answer
       python -m faultline.probes.leaders --controller  the number of the active controller

Prints one line of JSON. Exit codes: 0 done, 2 no broker says who the controller is.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError

from faultline.command import CommandError, Flags, run
from faultline.settings import Settings

_ANSWER_SECONDS = 5.0
_CONNECT_MS = 10_000
_TRIES = 50
"""Every second answer is of the broker that is asked."""


def leaders_by(settings: Settings, broker: int) -> dict[str, int] | None:
    """The leader of each partition of the visits, as this broker says it; None when it does not answer."""
    address, topic = settings.broker_address(broker), settings.text("VISITS_TOPIC")
    for _ in range(_TRIES):
        # A new client knows this broker only; from its answer on it may ask any of them.
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        try:
            found: Any = admin.list_topics(topic, timeout=_ANSWER_SECONDS)
        except KafkaException:
            return None
        if found.orig_broker_name.partition("/")[0] == address:
            return {f"{topic}-{number}": each.leader for number, each in sorted(found.topics[topic].partitions.items())}
    return None


def controller(settings: Settings) -> int:
    """The number of the active controller, which leads the log of the cluster's metadata. Raises CommandError."""
    try:
        admin: Any = KafkaAdminClient(bootstrap_servers=settings.bootstrap, bootstrap_timeout_ms=_CONNECT_MS)
        with contextlib.closing(admin):
            [topic] = admin.describe_metadata_quorum()["topics"]
            return int(topic["partitions"][0]["leader_id"])
    except (KafkaError, OSError) as error:
        raise CommandError(f"no broker says who the controller is: {error or type(error).__name__}") from None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = Flags("leaders", prog="leaders", description="Who leads.")
    parser.add_argument("--controller", action="store_true")
    chosen, settings = parser.parse_args(arguments), Settings()
    if chosen.controller:
        print(json.dumps(controller(settings)))
    else:
        print(json.dumps({broker: leaders_by(settings, broker) for broker in settings.brokers}))
    return 0


if __name__ == "__main__":
    run("leaders", main)
