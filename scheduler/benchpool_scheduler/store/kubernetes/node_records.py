"""Administrators' notes and windows of nodes, in the status of the pool's settings."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import Connection, KubeNotFound
from benchpool_scheduler.resources.pools import (
    POOL_SETTINGS,
    ClosedNode,
    ClosedNodeWindow,
)
from benchpool_scheduler.store.kubernetes.encoding import moment
from benchpool_scheduler.store.records import NodeRecord, NodeWindowRecord

KIND, NAME = POOL_SETTINGS.kind, "default"


class _Status(Struct, frozen=True, rename="camel"):
    closed_nodes: tuple[ClosedNode, ...] = ()


class _Settings(Struct, frozen=True):
    status: _Status = _Status()


async def read(connection: Connection) -> tuple[NodeRecord, ...]:
    """Return the saved records; empty in a cluster whose settings are not an object."""
    try:
        settings = await connection.get(KIND, NAME, as_=_Settings)
    except KubeNotFound:
        return ()
    return tuple(_record(it) for it in settings.status.closed_nodes)


async def write(connection: Connection, known: tuple[NodeRecord, ...]) -> None:
    """Save all records; in a cluster the scheduler creates the settings object at its start."""
    closed = [_closed_node(it) for it in known]
    try:
        await connection.patch(
            *(KIND, NAME, {"status": {"closedNodes": closed}}),
            subresource="status",
            as_=msgspec.Raw,
        )
    except KubeNotFound:
        return


def _record(it: ClosedNode) -> NodeRecord:
    window = it.window
    return NodeRecord(
        it.name,
        it.note,
        None if it.drained is None else it.drained.timestamp(),
        it.reason,
        it.by,
        None
        if window is None
        else NodeWindowRecord(
            window.begins.timestamp(), window.ends.timestamp(), window.reason, window.by
        ),
    )


def _closed_node(it: NodeRecord) -> ClosedNode:
    window = it.window
    return ClosedNode(
        it.name,
        it.note,
        None if it.drained is None else moment(it.drained),
        it.reason,
        it.by,
        None
        if window is None
        else ClosedNodeWindow(moment(window.begins), moment(window.ends), window.reason, window.by),
    )
