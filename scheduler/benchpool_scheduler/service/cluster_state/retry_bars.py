"""When and where a failed job may be retried; pure functions of its earlier failures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from benchpool_scheduler.store.retries import RetryRecord


def paused_until(retries: Sequence[RetryRecord]) -> float:
    """Return until when a job waits after its last failure, epoch seconds; 0 without a failure."""
    return retries[-1].next_at if retries else 0.0


def avoiding(
    retries: Sequence[RetryRecord], nodes: Collection[str], now: float
) -> Iterator[RetryRecord]:
    """Yield the failures whose nodes a job avoids now; none if no other node is left.

    Args:
        nodes: All nodes that serve training.
    """
    kept = [it for it in retries if it.avoided_until > now]
    if set(nodes) - {it.node for it in kept}:
        yield from kept


def avoided(retries: Sequence[RetryRecord], nodes: Collection[str], now: float) -> Iterator[str]:
    """Yield the nodes that a job avoids now."""
    return (it.node for it in avoiding(retries, nodes, now))
