"""Use up the epochs of transactional ids, as so many starts of their producers would. With the generator's packages.

Usage: python -m faultline.faults.use_up_epochs PREFIX

Each id that begins with PREFIX gets epochs until the broker gives it another producer id, after epoch 32,766
(org.apache.kafka.coordinator.transaction.TransactionMetadata, isEpochExhausted). Prints the ids.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from kafka.admin import KafkaAdminClient
from kafka.errors import for_code
from kafka.protocol.producer import InitProducerIdRequest

from faultline.messages import say
from faultline.settings import Settings

_TIMEOUT_MS = 60_000
_TOLD_EACH = 5_000


def main(arguments: Sequence[str]) -> None:
    """Use up the epochs of one id after the other."""
    (prefix,) = arguments
    admin = KafkaAdminClient(bootstrap_servers=Settings().bootstrap.split(","))
    try:
        for name in sorted(each.transactional_id for listed in admin.list_transactions().values() for each in listed):
            if name.startswith(prefix):
                # The client has no call for this request: only a producer sends it, once.
                admin._manager.run(_use_up, admin, name)
                print(name, flush=True)
    finally:
        admin.close()


async def _use_up(admin: KafkaAdminClient, name: str) -> None:
    """Use up the epochs of one id. Raises KafkaError when the broker refuses."""
    node = await admin._find_coordinator_id(name, "transaction")
    begin = now = await _next(admin, node, name)
    while now[0] == begin[0]:
        if now[1] % _TOLD_EACH == 0:
            say(f"{name}: epoch {now[1]:,}")
        now = await _next(admin, node, name)


async def _next(admin: KafkaAdminClient, node: int, name: str) -> tuple[int, int]:
    """Return the producer id and the epoch that a producer gets that starts now."""
    asked = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=_TIMEOUT_MS, producer_id=-1, producer_epoch=-1, max_version=5
    )
    answer = await admin._manager.send(asked, node_id=node)
    if answer.error_code:
        raise for_code(answer.error_code)(name)
    return answer.producer_id, answer.producer_epoch


if __name__ == "__main__":
    main(sys.argv[1:])
