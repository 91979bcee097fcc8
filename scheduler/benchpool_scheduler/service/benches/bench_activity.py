"""Which benches nobody uses, as far as the Hub has seen: it hears of notebook servers, not of GPUs.

A cell that computes for long and prints nothing looks the same as one that nobody runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from benchpool_scheduler.hub import Directory
from benchpool_scheduler.store.records import LeaseRecord

IDLE_S = 3600.0
"""A bench of which the Hub has seen nothing for so long is called idle."""


def last_active(directory: Directory) -> Mapping[tuple[str, str], float]:
    """Return when the Hub saw something of each server last, by user and server, epoch seconds."""
    return {
        (one.user, one.name): one.last_active
        for one in directory.servers() or ()
        if one.last_active is not None
    }


def idle_gpus(
    leases: Iterable[LeaseRecord], active: Mapping[tuple[str, str], float], now: float
) -> Mapping[str, datetime]:
    """Return since when the GPUs of idle benches are so, by UUID.

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
        # What the Hub saw of the server before this bench tells nothing of the bench.
        and now - max(at, lease.since) > IDLE_S
        for gpu in lease.gpus
    }
