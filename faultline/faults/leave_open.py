"""Leave a transaction open: its records are written, and no producer ever ends it. Runs with the generator's packages.

Usage: python -m faultline.faults.leave_open TOPIC MILLISECONDS

The broker aborts the transaction after so many milliseconds, its own timeout.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from kafka import KafkaProducer

from faultline.settings import Settings

_RECORDS = 16
_ANSWER_SECONDS = 30


def main(arguments: Sequence[str]) -> None:
    """Write the records, and end without a word to the broker."""
    topic, milliseconds = arguments
    producer = KafkaProducer(
        bootstrap_servers=Settings().bootstrap, transactional_id="foreign", transaction_timeout_ms=int(milliseconds)
    )
    producer.init_transactions()
    producer.begin_transaction()
    for _ in range(_RECORDS):
        producer.send(topic, b"of nobody").get(_ANSWER_SECONDS)
    # An exit that closes the producer would abort the transaction.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
