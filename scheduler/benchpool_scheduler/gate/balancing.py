"""Which replica gets a request: pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from benchpool_scheduler.gate.directory import Backend


def choose(
    backends: Sequence[Backend],
    in_flight: Mapping[str, int],
    turns: Mapping[str, int],
    refused: Collection[str] = (),
) -> Backend | None:
    """Return the replica with the fewest requests in flight; of equals the one that waited longest.

    Args:
        backends: Those that are ready.
        in_flight: Requests in flight by the replica's id; missing ones have none.
        turns: When each was chosen last, as a number that grows; missing ones never were.
        refused: Ids of those that did not take this request.

    Returns:
        None where nobody is left.

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
