"""The operations on machines: look, drain, open, note, maintenance window."""

from __future__ import annotations

from datetime import datetime

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.node_report import NodeReport, NodeReportTaken
from benchpool_scheduler.contract.nodes import (
    NodeNote,
    NodeOpened,
    NodeReason,
    NodeWindow,
    PoolNode,
)
from benchpool_scheduler.contract.operation import MIB, Given, Who, given, operation


class NodeOperations:
    """The machines of the pool, and whether they take starts."""

    @operation(
        "GET",
        "nodes",
        list[PoolNode],
        verb=PlainVerb(("nodes",), "List the machines of the pool, and whether they take starts."),
        tool=True,
    )
    def nodes(self) -> Given:
        """List the machines of the pool."""
        return given()

    @operation(
        "POST",
        "nodes/{node}/drain",
        PoolNode,
        who=Who.ADMIN,
        body=NodeReason,
        verb=PlainVerb(
            ("node", "drain"),
            "Let nothing more start on a machine; what runs there goes on.",
            "Whoever waits reads the reason. `benchpool node open` ends it.",
        ),
    )
    def drain_node(self, node: str, reason: str) -> Given:
        """Let nothing more start on a machine.

        What runs there goes on. Whoever waits reads the reason.
        """
        return given(NodeReason(reason), node=node)

    @operation(
        "POST",
        "nodes/{node}/open",
        PoolNode,
        who=Who.ADMIN,
        body=NodeOpened,
        verb=PlainVerb(
            ("node", "open"),
            "Let jobs and benches start on a machine again.",
            "It ends a drain, and takes away a maintenance window. The note stays.",
        ),
    )
    def open_node(self, node: str, reason: str = "") -> Given:
        """Let jobs and benches start on a machine again.

        It ends a drain, and takes away a maintenance window.
        """
        return given(NodeOpened(reason), node=node)

    @operation(
        "POST",
        "nodes/{node}/note",
        PoolNode,
        who=Who.ADMIN,
        body=NodeNote,
        verb=PlainVerb(
            ("node", "note"),
            "Write down what people should know of a machine.",
            "Without --text the note is taken away.",
        ),
    )
    def note_node(self, node: str, text: str = "") -> Given:
        """Write down what people should know of a machine."""
        return given(NodeNote(text), node=node)

    @operation("POST", "nodes/{node}/window", PoolNode, who=Who.ADMIN, body=NodeWindow)
    def maintain_node(self, node: str, begins: datetime, lasts_s: int, reason: str) -> Given:
        """Set the maintenance window of a machine.

        Nothing starts there in it, and before it only jobs whose time limit ends earlier. It
        replaces the window that the machine has.
        """
        return given(NodeWindow(begins, lasts_s, reason), node=node)

    @operation(
        "POST",
        "nodes/{node}/report",
        NodeReportTaken,
        who=Who.NODE,
        body=NodeReport,
        max_body=MIB,
        changes=False,
    )
    def report_node(self, node: str, report: NodeReport) -> Given:
        """Tell what the GPUs and the pods of a node did since the last report.

        For the agent of that very node, by a token of its pod.
        """
        return given(report, node=node)
