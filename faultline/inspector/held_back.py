"""Fates of the transactions that a checkpoint holds, as the broker that coordinates them reports."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from faultline.inspector.errors import InspectorError
from faultline.inspector.model import Report, Restart, Transaction
from faultline.inspector.words import count

if TYPE_CHECKING:
    from kafka.admin import TransactionDescription

FATES = {
    "open": "not committed at the broker yet",
    "committed": "committed at the broker already",
    "aborted": "ABORTED at the broker",
    "ended": "ended at the broker, which no longer says how",
    "doubtful": "ABORTED at the broker, or committed before the next one of its id was aborted",
    "behind": "of a later epoch than the broker knows",
    "unknown": "not known to the broker",
}
_LOST = "a restore cannot commit it, and what it wrote is lost"
STATES = {
    "Ongoing": "open",
    "PrepareCommit": "committed",
    "CompleteCommit": "committed",
    "PrepareAbort": "aborted",
    "CompleteAbort": "aborted",
}
"""Fates by the coordinator's states."""


def add_fates(report: Report, bootstrap: str, *, is_own: bool = True) -> None:
    """Ask the broker for each transaction of the report; one that it aborted or does not know is a problem.

    `is_own`: the sink writes to this broker. Otherwise one that knows none of the transactions may be another one.

    Raises InspectorError when the broker gives no answer.
    """
    if not report.transactions:
        return
    # Loading the client costs more than reading a checkpoint.
    from kafka.admin import KafkaAdminClient  # noqa: PLC0415
    from kafka.errors import KafkaError, TransactionalIdNotFoundError  # noqa: PLC0415

    try:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), request_timeout_ms=15_000)
        try:
            for transaction in report.transactions:
                name = transaction.transactional_id
                try:
                    transaction.fate = fate(transaction, admin.describe_transactions([name])[name])
                except TransactionalIdNotFoundError:
                    transaction.fate = "unknown"
        finally:
            admin.close()
    except KafkaError as error:
        raise InspectorError(
            f"the broker at {bootstrap} did not say what became of the transactions: {error}"
        ) from None
    if not is_own and all(each.fate == "unknown" for each in report.transactions):
        for each in report.transactions:
            each.fate = ""
        report.notes.append(
            f"the broker at {bootstrap} knows none of the {count(len(report.transactions), 'transaction')} that the"
            " checkpoint holds: a restore fails if the sink writes to it; name the sink's broker with --bootstrap"
        )
        return
    _set_against(report)


def fate(transaction: Transaction, described: TransactionDescription) -> str:
    """Say one of FATES by what the coordinator has under the transactional id now."""
    if described.producer_id != transaction.producer_id:
        return "unknown"
    # Flink takes a new epoch of the id for each transaction: with the same epoch, it is this transaction.
    if described.producer_epoch == transaction.epoch and described.state in STATES:
        return STATES[described.state]
    # The broker aborts a transaction that timed out under the next epoch (TransactionCoordinator).
    if described.producer_epoch == transaction.epoch + 1 and STATES.get(described.state) == "aborted":
        return "doubtful"
    return "behind" if described.producer_epoch < transaction.epoch else "ended"


def _set_against(report: Report) -> None:
    """Add what follows from the fates. Each exception is what `KafkaCommitter` of Flink's connector gets."""
    by_fate = defaultdict(list)
    for each in report.transactions:
        by_fate[each.fate].append(f"transaction {each.transactional_id} of checkpoint {each.checkpoint}")
    # InvalidTxnStateException and ProducerFencedException: it goes on.
    report.problems += [f"{each} was aborted: {_LOST}" for each in by_fate["aborted"]]
    report.problems += [f"{each} has an epoch that the broker has not reached: {_LOST}" for each in by_fate["behind"]]
    report.notes += [
        f"{each} was aborted by the broker, or was committed before the next one of its id was aborted; in the first"
        " case (it timed out) what it wrote is lost"
        for each in by_fate["doubtful"]
    ]
    # InvalidPidMappingException: the job fails.
    report.problems += [
        f"{each} is not known to the broker (another broker, or expired there): a restore commits it, and fails"
        for each in by_fate["unknown"]
    ]
    if report.restart is None:
        return
    if by_fate["unknown"]:
        report.restart = Restart("impossible", report.restart.step, "A restore at this broker fails: see the problems")
        return
    lost = by_fate["aborted"] + by_fate["behind"]
    if by_fate["open"]:
        report.restart.transactions = f"first it commits {count(len(by_fate['open']), 'prepared transaction')}"
    elif lost:
        report.restart.transactions = f"it cannot commit {count(len(lost), 'transaction')}"
    else:
        report.restart.transactions = "its transactions have ended at the broker already"
