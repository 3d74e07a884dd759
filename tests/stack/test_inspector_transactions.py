"""The fate of a prepared transaction, as a real broker reports it."""

from __future__ import annotations

import uuid

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from faultline.inspector.ends import COUNTED, add_lag
from faultline.inspector.held_back import FATES, add_fates
from faultline.inspector.model import Partition, Report, Restart, Transaction
from faultline.inspector.render.prose import render
from faultline.waiting import wait_until
from tests.stack.broker import Broker

pytestmark = pytest.mark.ci


def report_of(transaction: Transaction) -> Report:
    restart = Restart("restore", transaction.checkpoint, "Restored now", transactions="first it commits 1 of them")
    return Report("flink", "checkpoint", "chk-7", "7", transactions=[transaction], restart=restart)


@pytest.mark.parametrize("end", ["open", "committed", "aborted", "ended", "doubtful", "behind", "unknown"])
def test_the_broker_says_what_became_of_a_transaction(broker: Broker, end: str, request: pytest.FixtureRequest) -> None:
    topic, name = f"results-{uuid.uuid4()}", f"job-{uuid.uuid4()}"
    broker.create_topics(topic)

    def new_epoch() -> KafkaProducer:
        # As Flink's writer does it before each transaction.
        timeout = 1_000 if end == "doubtful" else 60_000
        producer = KafkaProducer(
            bootstrap_servers=broker.bootstrap, transactional_id=name, transaction_timeout_ms=timeout
        )
        request.addfinalizer(producer.close)
        producer.init_transactions()
        return producer

    producer = new_epoch()
    producer.begin_transaction()
    producer.send(topic, b"a window").get(30)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    begun = admin.describe_transactions([name])[name]
    # As the job's checkpoint keeps it, between the two phases of the commit.
    known = name if end != "unknown" else f"{name}-other"
    epoch = begun.producer_epoch + (end == "behind")
    report = report_of(Transaction(known, begun.producer_id, epoch, 7))
    if end == "aborted":
        producer.abort_transaction()
    elif end in ("committed", "ended"):
        producer.commit_transaction()
    if end == "ended":
        new_epoch()

    if end == "doubtful":
        aborted = lambda: admin.describe_transactions([name])[name].state == "CompleteAbort"  # noqa: E731
        wait_until(aborted, "the broker to abort what has timed out", seconds=60)
    admin.close()
    if end == "unknown":
        foreign = report_of(*report.transactions)
        before = foreign.restart
        add_fates(foreign, broker.bootstrap, is_own=False)
        assert (foreign.problems, foreign.restart) == ([], before)
        assert "knows none of the 1 transaction" in foreign.notes[0]
    add_fates(report, broker.bootstrap)
    assert report.transactions[0].fate == end
    assert FATES[end] in render(report)
    assert report.restart is not None
    said = report.restart.transactions
    assert bool(report.problems) == (end in ("aborted", "behind", "unknown"))
    assert bool(report.notes) == (end == "doubtful")
    assert (report.restart.action == "impossible") == (end == "unknown")
    expected = {
        "open": "first it commits 1 prepared transaction",
        "committed": "its transactions have ended at the broker already",
        "ended": "its transactions have ended at the broker already",
        "doubtful": "its transactions have ended at the broker already",
        "aborted": "it cannot commit 1 transaction",
        "behind": "it cannot commit 1 transaction",
        "unknown": "",
    }
    assert said == expected[end]


def test_the_end_of_a_transaction_is_not_lag(broker: Broker, request: pytest.FixtureRequest) -> None:
    topic = f"in-transactions-{uuid.uuid4()}"
    broker.create_topics(topic, partitions=4)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=f"job-{uuid.uuid4()}")
    request.addfinalizer(producer.close)
    producer.init_transactions()
    # Partition 0 has records 0 to 2, the end of their transaction at 3, record 4, and an end at 5.
    for partitions in ((0, 0, 0, 1, 1, 1), (0,)):
        producer.begin_transaction()
        for partition in partitions:
            producer.send(topic, b"a window", partition=partition).get(30)
        producer.commit_transaction()
    plain = KafkaProducer(bootstrap_servers=broker.bootstrap)
    request.addfinalizer(plain.close)
    for _ in range(COUNTED + 1):
        plain.send(topic, b"a visit", partition=3)
    plain.flush()
    starts = [Partition(topic, 0, 1, None), Partition(topic, 1, 3, None), Partition(topic, 2, 0, None)]
    restart = Restart("restore", 7, "Restored now", [*starts, Partition(topic, 3, 0, None)])
    report = Report("flink", "checkpoint", "chk-7", "7", restart=restart)

    add_lag(report, broker.bootstrap)
    assert not report.problems
    assert [(lag.end, lag.empty, lag.records) for lag in report.lag] == [
        (6, 2, 3), (4, 1, 0), (0, 0, 0), (COUNTED + 1, None, COUNTED + 1)
    ]  # fmt: skip
    text = render(report)
    for line in (
        f"{topic} partition 0: at 1, end 6, lag 3, and 2 offsets without a record (ends of transactions)\n",
        f"{topic} partition 1: at 3, end 4, lag 0, and 1 offset without a record (ends of transactions)\n",
        f"{topic} partition 2: at 0, end 0, lag 0\n",
        f"at 0, end {COUNTED + 1}, {COUNTED + 1} offsets behind, not counted how many hold a record\n",
        f"at most {COUNTED + 4:,} records arrived since",
    ):
        assert line in text, text
