"""The right end of an open transaction, by the checkpoints and by whether its job runs. No I/O."""

from __future__ import annotations

from faultline.inspector.transactions.errors import Refused
from faultline.inspector.transactions.model import ABORT, COMMIT, UNKNOWN, WAIT, OpenTransaction

_ENDING = {"PrepareCommit": "commits", "PrepareAbort": "aborts"}
"""States in which the coordinator has decided, and writes the markers that end the transaction."""


def advise(transaction: OpenTransaction, unreadable: list[str]) -> None:
    """Write `right` and `why` into a transaction of which everything else is known."""
    transaction.right, transaction.why = _decide(transaction, unreadable)


def _decide(transaction: OpenTransaction, unreadable: list[str]) -> tuple[str, str]:
    if transaction.state in _ENDING:
        return WAIT, f"the broker {_ENDING[transaction.state]} it already"
    if transaction.promises:
        return _promised(transaction)
    if not transaction.transactional_id:
        return UNKNOWN, "no coordinator knows it: a hanging transaction, see `kafka-transactions.sh find-hanging`"
    if not transaction.job:
        return UNKNOWN, "it is of no job whose checkpoints are here: only the program that began it knows"
    return _not_promised(transaction, unreadable)


def _promised(transaction: OpenTransaction) -> tuple[str, str]:
    checkpoint = transaction.promises[-1].checkpoint
    promised = f"checkpoint {checkpoint} promises to commit it: its records are not written again"
    if transaction.job_runs:
        return WAIT, f"{promised}; job {transaction.job} runs and commits it"
    return COMMIT, promised


def _not_promised(transaction: OpenTransaction, unreadable: list[str]) -> tuple[str, str]:
    job = f"job {transaction.job}"
    if transaction.job_runs:
        return WAIT, f"{job} runs, and commits it with its next checkpoint"
    if unreadable:
        return UNKNOWN, "a checkpoint that cannot be read may promise to commit it"
    if transaction.job_runs is None:
        return UNKNOWN, f"whether {job} runs is not known, and a checkpoint that completes now may promise it"
    return ABORT, f"{job} does not run, and no complete checkpoint has it: a restore writes its records again"


def allow(act: str, transaction: OpenTransaction) -> None:
    """Check one of COMMIT and ABORT that a user asks for. Raises Refused when it would lose or repeat records."""
    if act == COMMIT and not transaction.promises:
        raise Refused(
            f"{transaction.label} is not committed: no complete checkpoint has it, so a restore writes its records a"
            f" second time ({transaction.why})"
        )
    if act == ABORT and transaction.promises:
        raise Refused(
            f"{transaction.label} is not aborted: checkpoint {transaction.promises[-1].checkpoint}"
            f" ({transaction.promises[-1].path}) promises to commit it, and its records would be lost"
        )
    # Of another program's transaction only its user knows what is right.
    foreign = transaction.right == UNKNOWN and transaction.transactional_id and not transaction.job
    if act == ABORT and transaction.right != ABORT and not foreign:
        raise Refused(f"{transaction.label} is not aborted: {transaction.why}")
