"""Selection of a replica for a request: pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from benchpool_scheduler.gate.directory import Backend


def choose(
    backends: Sequence[Backend],
    in_flight: Mapping[str, int],
    turns: Mapping[str, int],
    refused: Collection[str] = (),
) -> Backend | None:
    """Return the replica with the fewest requests in flight, among equals the least recent one.

    Args:
        backends: Ready replicas.
        in_flight: Requests in flight by the replica's ID; missing ones have none.
        turns: Number of each replica's last choice, increasing; missing ones were never chosen.
        refused: IDs of the replicas that refused this request.

    Returns:
        None if no replica is left.

    >>> a, b = Backend("a", "127.0.0.1", 1), Backend("b", "127.0.0.1", 2)
    >>> choose([a, b], {"a": 2, "b": 1}, {}).id, choose([a, b], {}, {"a": 7}).id
    ('b', 'b')
    >>> choose([a, b], {"a": 2, "b": 1}, {}, refused={"b"}).id
    'a'
    """
    left = [one for one in backends if one.id not in refused]
    return min(
        left, key=lambda one: (in_flight.get(one.id, 0), turns.get(one.id, 0), one.id), default=None
    )
