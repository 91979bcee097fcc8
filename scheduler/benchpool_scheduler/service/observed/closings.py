"""Nodes that administrators closed, for the core: when each is closed, and the reason in words.

All functions are pure. A node is named without its slices: ``place`` names are those of the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime

from benchpool_scheduler.core.lifecycle.closing import Closing, keep_off
from benchpool_scheduler.service.observed.inventory import node_of
from benchpool_scheduler.store.records import NodeRecord

Nodes = Mapping[str, NodeRecord]


def closings(node: NodeRecord) -> Iterator[Closing]:
    """Yield the periods in which a node takes no starts."""
    if node.drained is not None:
        yield Closing()
    if node.window is not None:
        yield Closing(node.window.begins, node.window.ends)


def closed_now(nodes: Nodes, now: float) -> frozenset[str]:
    """Return the nodes that take no starts now."""
    return frozenset(
        name for name, node in nodes.items() if any(it.closed(now) for it in closings(node))
    )


def barred_places(
    nodes: Nodes, places: Iterable[str], limit_s: float | None, now: float
) -> Iterator[str]:
    """Yield the places where a job with this time limit may not be started now."""
    if not nodes:
        return
    for place in places:
        node = nodes.get(node_of(place))
        if node is not None and keep_off(closings(node), now, limit_s):
            yield place


def changes(nodes: Nodes, limit_s: float | None = 0.0) -> Iterator[float]:
    """Yield the instants at which the nodes open to a job with this time limit change.

    Without a limit, these are the instants at which nodes close and open.
    """
    for node in nodes.values():
        for closing in closings(node):
            yield from closing.changes(limit_s)


def words(node: NodeRecord | None, *, closed: bool) -> str:
    """Return why nothing starts on a node, as the rest of a sentence that begins with its name.

    Args:
        closed: The node takes no starts now.

    >>> words(NodeRecord("n", drained=5.0, reason="new disk"), closed=True)
    'drains (new disk)'
    """
    if node is not None and node.drained is not None:
        return f"drains ({node.reason})"
    if node is None or node.window is None:
        return ""
    window = node.window
    if closed:
        return f"is in maintenance until {instant(window.ends)} ({window.reason})"
    return (
        "accepts only jobs whose time limit ends before its maintenance, from "
        f"{instant(window.begins)} to {instant(window.ends)} ({window.reason})"
    )


def closes_s(node: NodeRecord | None, *, closed: bool) -> float | None:
    """Return when an open node closes, or None if it is closed or stays open."""
    if node is None or closed or node.window is None:
        return None
    return node.window.begins


def instant(at: float) -> str:
    """Return a time in UTC, as text for all readers.

    >>> instant(0.0)
    '1970-01-01 00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
