"""Connections that are cut or lose packets, by the machine's own firewall."""

from __future__ import annotations

from faultline.faults.model import Need, Row
from faultline.faults.rows.lines import NOTHING, RETRIES
from faultline.faults.steps import Line


def _rule(action: str, port: str, match: str = "") -> str:
    """The lines that add (-I) or remove (-D) a rule for both directions of the connections to a port of loopback."""
    rules = (
        f"iptables --wait 5 {action} OUTPUT -o lo -p tcp --{side} {port} {match}-j DROP" for side in ("dport", "sport")
    )
    # A repair that is interrupted between the two is done again, and the first rule is gone then.
    return (" && " if action == "-I" else "; ").join(rules)


_LOSSY = "-m statistic --mode random --probability 0.2 "

ROWS = (
    Row(
        "broker-cut-off", (Line(_rule("-I", "{kafka_port}")),), (Line(_rule("-D", "{kafka_port}")),),
        needs=(Need.FIREWALL,), seconds=12,
        promise=NOTHING, why=RETRIES,
    ),
    Row(
        "broker-over-a-bad-line", (Line(_rule("-I", "{kafka_port}", _LOSSY)),),
        (Line(_rule("-D", "{kafka_port}", _LOSSY)),),
        needs=(Need.FIREWALL,), seconds=15,
        promise="nothing is lost or repeated; all is slow", why="every fifth packet is lost, and TCP sends it again",
    ),
    Row(
        "taskmanager-cut-off", (Line(_rule("-I", "{rpc_port}")),), (Line(_rule("-D", "{rpc_port}")),),
        needs=(Need.FIREWALL,), seconds=14,
        promise=NOTHING,
        why="without a JobManager no transaction is committed, and the tasks that restart abort what others left",
    ),
)  # fmt: skip
