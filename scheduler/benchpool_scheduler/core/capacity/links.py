"""Choice of GPUs inside a node by their links (R12).

The closeness of two GPUs is their link, then whether they share a CPU socket. The best set of a
size has the largest sum of closeness over its pairs. On a tie, the set wins that leaves the largest
sum among the free GPUs, so that well-linked groups stay whole. Then the lowest positions win.

All sets are compared if there are few of them, as in a node of eight GPUs. In larger nodes a set is
grown from every GPU by adding the closest GPU each time. The best of these sets is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations
from math import comb

from benchpool_scheduler.core.capacity.bits import first, members

MOST_SETS = 512
"""Limit on sets that are all compared. Above it, sets are grown instead."""

SOCKET = 1
LINK = 1 << 10
"""Weights of a shared socket and of one step of a link. No sum of sockets outweighs a link."""

Links = tuple[tuple[int, ...], ...]
Weights = tuple[tuple[int, ...], ...]


def choose(links: Links, sockets: tuple[int, ...], held: int, free: int, count: int) -> int:
    """Return ``held`` and the best ``count`` of the free positions, as a set.

    Args:
        links: Closeness of each pair of positions. Empty if unknown.
        sockets: CPU socket of each position. Empty if unknown.
        held: Positions that are in the set in any case.

    >>> pairs = ((0, 2, 1, 1), (2, 0, 1, 1), (1, 1, 0, 2), (1, 1, 2, 0))
    >>> bin(choose(pairs, (), 0, 0b1111, 2)), bin(choose(pairs, (), 0, 0b1101, 1))
    ('0b11', '0b1')
    """
    if count >= free.bit_count() or not (links or sockets):
        return held | first(free, count)
    return _chosen(links, sockets, held, free, count)


@lru_cache(maxsize=4096)
def _chosen(links: Links, sockets: tuple[int, ...], held: int, free: int, count: int) -> int:
    spots, fixed = list(members(free)), tuple(members(held))
    weights = _weights(links, sockets, 1 + max(spots + list(fixed)))
    if comb(len(spots), count) <= MOST_SETS:
        sets: Iterator[tuple[int, ...]] = combinations(spots, count)
    else:
        sets = (_grown(weights, fixed, spots, start, count) for start in spots)

    def worth(some: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
        left = [at for at in spots if at not in some]
        return -_sum(weights, (*fixed, *some)), -_sum(weights, left), some

    return held | sum(1 << at for at in min(sets, key=worth))


@lru_cache(maxsize=64)
def _weights(links: Links, sockets: tuple[int, ...], size: int) -> Weights:
    def link(a: int, b: int) -> int:
        return links[a][b] if a < len(links) and b < len(links[a]) else 0

    def together(a: int, b: int) -> bool:
        return max(a, b) < len(sockets) and sockets[a] == sockets[b]

    return tuple(
        tuple(
            0 if a == b else LINK * (link(a, b) + link(b, a)) + SOCKET * together(a, b)
            for b in range(size)
        )
        for a in range(size)
    )


def _sum(weights: Weights, some: Sequence[int]) -> int:
    return sum(weights[a][b] for a, b in combinations(some, 2))


def _grown(
    weights: Weights, fixed: tuple[int, ...], spots: Sequence[int], start: int, count: int
) -> tuple[int, ...]:
    """Return a set grown from ``start`` by adding the position closest to the set each time.

    On a tie, the position is added that is least close to the remaining free positions.
    """
    grown, left = [start], [at for at in spots if at != start]
    while len(grown) < count:
        inside, rest = (*fixed, *grown), tuple(left)
        best = min(
            left,
            key=lambda at: (
                -sum(weights[at][other] for other in inside),
                sum(weights[at][other] for other in rest),
                at,
            ),
        )
        left.remove(best)
        grown.append(best)
    return tuple(sorted(grown))
