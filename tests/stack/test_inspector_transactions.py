"""What a real broker says became of a prepared transaction."""

from __future__ import annotations

import uuid

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from inspector.model import Report, Restart, Transaction
from inspector.render.prose import render
from inspector.transactions import FATES, add_fates
from tests.stack.broker import Broker

pytestmark = pytest.mark.stack


def report_of(transaction: Transaction) -> Report:
    restart = Restart("restore", transaction.checkpoint, "Restored now", transactions="first it commits 1 of them")
    return Report("flink", "checkpoint", "chk-7", "7", transactions=[transaction], restart=restart)


@pytest.mark.parametrize("end", ["open", "committed", "aborted", "ended", "unknown"])
def test_the_broker_says_what_became_of_a_transaction(broker: Broker, end: str, request: pytest.FixtureRequest) -> None:
    topic, name = f"results-{uuid.uuid4()}", f"job-{uuid.uuid4()}"
    broker.create_topics(topic)

    def new_epoch() -> KafkaProducer:
        # As Flink's writer does it before each transaction.
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name)
        request.addfinalizer(producer.close)
        producer.init_transactions()
        return producer

    producer = new_epoch()
    producer.begin_transaction()
    producer.send(topic, b"a window").get(30)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    begun = admin.describe_transactions([name])[name]
    admin.close()
    # As the job's checkpoint keeps it, between the two phases of the commit.
    known = name if end != "unknown" else f"{name}-other"
    report = report_of(Transaction(known, begun.producer_id, begun.producer_epoch, 7))
    if end == "aborted":
        producer.abort_transaction()
    elif end in ("committed", "ended"):
        producer.commit_transaction()
    if end == "ended":
        new_epoch()

    add_fates(report, broker.bootstrap)
    assert report.transactions[0].fate == end
    assert FATES[end] in render(report)
    assert report.restart is not None
    said = report.restart.transactions
    assert bool(report.problems) == (end == "aborted")
    expected = {
        "open": "first it commits 1 prepared transaction",
        "committed": "its transactions have ended at the broker already",
        "ended": "its transactions have ended at the broker already",
    }
    assert said == expected.get(end, "first it commits 1 of them")
