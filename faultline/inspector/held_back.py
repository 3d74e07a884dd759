"""Fates of the transactions that a checkpoint holds, as the broker that coordinates them reports."""

from __future__ import annotations

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
    "unknown": "not known to the broker",
}
STATES = {
    "Ongoing": "open",
    "PrepareCommit": "committed",
    "CompleteCommit": "committed",
    "PrepareAbort": "aborted",
    "CompleteAbort": "aborted",
}
"""Fates by the coordinator's states."""


def add_fates(report: Report, bootstrap: str) -> None:
    """Ask the broker for each transaction of the report; one that it aborted or does not know is a problem.

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
    _set_against(report)


def fate(transaction: Transaction, described: TransactionDescription) -> str:
    """Say one of FATES by what the coordinator has under the transactional id now."""
    if described.producer_id != transaction.producer_id:
        return "unknown"
    # Flink takes a new epoch of the id for each transaction: with the same epoch, it is this transaction.
    if described.producer_epoch == transaction.epoch and described.state in STATES:
        return STATES[described.state]
    return "ended"


def _set_against(report: Report) -> None:
    aborted = [each for each in report.transactions if each.fate == "aborted"]
    report.problems += [
        f"transaction {each.transactional_id} of checkpoint {each.checkpoint} was aborted by the broker (timed out, or"
        " fenced by another job): a restore cannot commit it, and what it wrote is lost"
        for each in aborted
    ]
    # KafkaCommitter of the connector goes on after a fenced producer, a transaction that has ended and an unknown
    # producer; InvalidPidMappingException, the answer here, fails the job.
    unknown = [each for each in report.transactions if each.fate == "unknown"]
    report.problems += [
        f"transaction {each.transactional_id} of checkpoint {each.checkpoint} is not known to the broker (another"
        " broker, or expired there): a restore commits it, and fails"
        for each in unknown
    ]
    if report.restart is None:
        return
    if unknown:
        report.restart = Restart("impossible", report.restart.step, "A restore at this broker fails: see the problems")
        return
    waiting = sum(1 for each in report.transactions if each.fate == "open")
    known = all(each.fate in ("open", "committed", "ended") for each in report.transactions)
    if known:
        report.restart.transactions = (
            f"first it commits {count(waiting, 'prepared transaction')}"
            if waiting
            else "its transactions have ended at the broker already"
        )
