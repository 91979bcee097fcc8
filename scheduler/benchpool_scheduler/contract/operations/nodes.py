"""Operations on nodes: list, drain, open, note, maintenance window."""

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
    """Nodes of the pool, and whether they accept starts."""

    @operation(
        "GET",
        "nodes",
        list[PoolNode],
        verb=PlainVerb(("nodes",), "List the machines of the pool, and whether they accept jobs."),
        tool=True,
    )
    def nodes(self) -> Given:
        """List the nodes of the pool."""
        return given()

    @operation(
        "POST",
        "nodes/{node}/drain",
        PoolNode,
        who=Who.ADMIN,
        body=NodeReason,
        verb=PlainVerb(
            ("node", "drain"),
            "Let nothing more start on a machine; running work continues.",
            "Waiting users see the reason. `benchpool node uncordon` ends the drain.",
        ),
    )
    def drain_node(self, node: str, reason: str) -> Given:
        """Drain a node: nothing more starts on it.

        Running work continues. Users who wait see the reason.
        """
        return given(NodeReason(reason), node=node)

    @operation(
        "POST",
        "nodes/{node}/open",
        PoolNode,
        who=Who.ADMIN,
        body=NodeOpened,
        verb=PlainVerb(
            ("node", "uncordon"),
            "Let jobs and benches start on a machine again.",
            "It ends a drain and removes a maintenance window. The note stays.",
            replaces=("node", "open"),
        ),
    )
    def open_node(self, node: str, reason: str = "") -> Given:
        """Let jobs and benches start on a node again.

        It ends a drain and removes a maintenance window.
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
            "Write a note on a machine for users.",
            "Without --text the note is removed.",
        ),
    )
    def note_node(self, node: str, text: str = "") -> Given:
        """Write a note on a node for users."""
        return given(NodeNote(text), node=node)

    @operation("POST", "nodes/{node}/window", PoolNode, who=Who.ADMIN, body=NodeWindow)
    def maintain_node(self, node: str, begins: datetime, lasts_s: int, reason: str) -> Given:
        """Set the maintenance window of a node.

        Nothing starts on the node during the window. Before it, only jobs start whose time limit
        ends earlier. The new window replaces the present one.
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
        """Report what the GPUs and pods of a node did since the last report.

        For the agent of that node, by a token of its pod.
        """
        return given(report, node=node)
