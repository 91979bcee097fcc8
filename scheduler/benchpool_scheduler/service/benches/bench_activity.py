"""Idle benches as far as the Hub can see: it observes notebook servers, not GPUs.

A cell that computes for a long time without output looks the same as an idle server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from benchpool_scheduler.hub import Directory
from benchpool_scheduler.store.records import LeaseRecord

IDLE_S = 3600.0
"""Time without activity in the Hub after which a bench counts as idle, in seconds."""


def last_active(directory: Directory) -> Mapping[tuple[str, str], float]:
    """Return when the Hub last saw activity of each server, by user and server, epoch seconds."""
    return {
        (one.user, one.name): one.last_active
        for one in directory.servers() or ()
        if one.last_active is not None
    }


def idle_gpus(
    leases: Iterable[LeaseRecord], active: Mapping[tuple[str, str], float], now: float
) -> Mapping[str, datetime]:
    """Return since when each GPU of an idle bench is idle, by UUID.

    >>> lease = LeaseRecord("l", "susan", "", "s", ("GPU-1", "GPU-2"), since=0.0)
    >>> sorted(idle_gpus([lease], {("susan", ""): 10.0}, 3611.0))
    ['GPU-1', 'GPU-2']
    >>> idle_gpus([lease], {("susan", ""): 20.0}, 3611.0), idle_gpus([lease], {}, 3611.0)
    ({}, {})
    """
    return {
        gpu: datetime.fromtimestamp(at, UTC)
        for lease in leases
        if (at := active.get((lease.user, lease.server))) is not None
        # Activity of the server before this lease does not count for the bench.
        and now - max(at, lease.since) > IDLE_S
        for gpu in lease.gpus
    }
