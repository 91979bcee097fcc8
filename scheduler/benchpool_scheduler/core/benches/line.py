"""Queue for build GPUs: which server gets which GPUs (R2, R3).

Servers whose GPUs are not available now wait in the order of their first requests. Each server is
*seated* at the node where it gets its GPUs soonest. GPUs of a seated server are not offered to
later servers. A server whose GPUs are all free is served now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeVar

from benchpool_scheduler.core.model import GpuId, NodeName

Key = TypeVar("Key")


class Use(IntEnum):
    """State of a GPU that a bench could get. Smaller values are available sooner and cost less."""

    FREE = 0
    LEAVING = 1  # its job has received its notice
    OVER_QUOTA = 2  # over-quota job that can be paused
    WITHIN_QUOTA = 3  # other job that can be paused, on a GPU that benches may reclaim


@dataclass(frozen=True, slots=True)
class BenchGpu:
    """A GPU that a bench could get.

    Attributes:
        rank: Rank of its model among the models that the server accepts. The best is 0.
    """

    gpu: GpuId
    use: Use
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Seat:
    """Node and GPUs that a server gets."""

    node: NodeName
    gpus: tuple[BenchGpu, ...]

    @property
    def ready(self) -> bool:
        """Return whether all GPUs are free now."""
        return all(gpu.use is Use.FREE for gpu in self.gpus)


Offer = Mapping[NodeName, Sequence[BenchGpu]]
"""GPUs that a server could get, by node, with nodes in order of preference."""


def seat(asked: int, offer: Offer, taken: Iterable[GpuId] = ()) -> Seat | None:
    """Return the GPUs of one node that are available soonest, or None if no node has enough.

    Args:
        asked: Number of GPUs.
        offer: GPUs that the server could get, by node.
        taken: GPUs that are kept for other servers.

    >>> free, lent = BenchGpu(GpuId("a/0"), Use.FREE), BenchGpu(GpuId("a/1"), Use.OVER_QUOTA)
    >>> seat(1, {NodeName("a"): (lent, free)}).gpus[0].gpu
    'a/0'
    >>> seat(2, {NodeName("a"): (lent, free)}).ready
    False
    >>> seat(3, {NodeName("a"): (lent, free)}) is None
    True
    """
    gone = frozenset(taken)
    best: tuple[tuple[int, ...], Seat] | None = None
    for order, (node, gpus) in enumerate(offer.items()):
        left = sorted((g for g in gpus if g.gpu not in gone), key=lambda g: (g.use, g.rank))
        if len(left) < asked:
            continue
        chosen = tuple(left[:asked])
        uses = [gpu.use for gpu in chosen]
        cost = (
            max(uses, default=Use.FREE),
            *(uses.count(use) for use in (Use.WITHIN_QUOTA, Use.OVER_QUOTA, Use.LEAVING)),
            sum(gpu.rank for gpu in chosen),
            order,
        )
        if best is None or cost < best[0]:
            best = cost, Seat(node, chosen)
    return None if best is None else best[1]


def seats(line: Iterable[tuple[Key, int, Offer]], kept: int) -> dict[Key, Seat]:
    """Seat the waiting servers in queue order. Servers that cannot be seated are left out.

    Args:
        line: Key, number of GPUs and offer of each server, in queue order.
        kept: GPUs that are set aside for benches and not leased (R3). A server beyond this number
            gets only GPUs that are free or being released.

    >>> lent = {NodeName("a"): (BenchGpu(GpuId("a/0"), Use.OVER_QUOTA),)}
    >>> list(seats([("susan", 1, lent), ("joe", 1, lent)], kept=1))
    ['susan']
    >>> seats([("susan", 1, lent)], kept=0)
    {}
    """
    taken: set[GpuId] = set()
    found: dict[Key, Seat] = {}
    for key, asked, offer in line:
        open_ = offer if asked <= kept else _without_calling(offer)
        got = seat(asked, open_, taken)
        if got is not None:
            found[key] = got
            taken.update(gpu.gpu for gpu in got.gpus)
            kept -= asked
    return found


def called(seated: Iterable[Seat]) -> dict[NodeName, int]:
    """Return how many GPUs each node must free for these seats.

    A seat that is not ready counts with all of its GPUs, also with those that are free already.

    >>> free, lent = BenchGpu(GpuId("a/0"), Use.FREE), BenchGpu(GpuId("a/1"), Use.OVER_QUOTA)
    >>> called([Seat(NodeName("a"), (free,)), Seat(NodeName("a"), (free, lent))])
    {'a': 2}
    """
    found: dict[NodeName, int] = {}
    for it in seated:
        if not it.ready:
            found[it.node] = found.get(it.node, 0) + len(it.gpus)
    return found


def _without_calling(offer: Offer) -> Offer:
    had = (Use.FREE, Use.LEAVING)
    return {node: [gpu for gpu in gpus if gpu.use in had] for node, gpus in offer.items()}


LEAST_KNOWN = 5
"""Fewest ended leases from which lease durations are estimated."""
ANY_MINUTE_S = 60.0
"""Time in which a lease older than all ended leases ends with even odds, in seconds."""
EARLY, MIDDLE, LATE = 0.06, 0.5, 0.94
"""Quantiles of the estimate. Slightly more than four of five starts fall in the range (R22)."""
FURTHEST_S = 31_622_400.0
NEARLY = 1e-9


class LeaseEnds(NamedTuple):
    """Estimated end of enough held leases, in seconds from now. None means unknown."""

    earliest_s: float
    likely_s: float | None
    latest_s: float | None


def ends_in(ages_s: Sequence[float], lasted_s: Sequence[float], position: int) -> LeaseEnds | None:
    """Return when the ``position``-th held lease ends, or None if too few leases have ended.

    Model: a held lease lasts as long as one of the ended leases that lasted longer than its age, or
    longer than all of them. All of these cases are equally likely. The number of leases that have
    ended by an instant follows from this.

    Args:
        ages_s: Age of each held lease that could free its GPUs, in seconds.
        lasted_s: Durations of ended leases, in seconds.
        position: Number of leases that must end, from 1.

    >>> ends_in([600.0, 60.0], [1200.0] * 5, 1)
    LeaseEnds(earliest_s=600.0, likely_s=600.0, latest_s=1140.0)
    >>> ends_in([600.0, 60.0], [1200.0] * 5, 2)
    LeaseEnds(earliest_s=1140.0, likely_s=1140.0, latest_s=None)
    >>> ends_in([600.0], [1200.0] * 4, 1) is None
    True
    """
    if len(lasted_s) < LEAST_KNOWN or not 1 <= position <= len(ages_s):
        return None
    lasted = sorted(lasted_s)
    early, middle, late = (_by(ages_s, lasted, position, of) for of in (EARLY, MIDDLE, LATE))
    return None if early is None else LeaseEnds(early, middle, late)


def _by(
    ages_s: Sequence[float], lasted: Sequence[float], position: int, chance: float
) -> float | None:
    """Return the second by which ``position`` leases have ended with this probability, or None."""
    if _ended(ages_s, lasted, position, FURTHEST_S) < chance - NEARLY:
        return None
    low, high = -1, int(FURTHEST_S)
    while high - low > 1:
        middle = (low + high) // 2
        if _ended(ages_s, lasted, position, float(middle)) < chance - NEARLY:
            low = middle
        else:
            high = middle
    return float(high)


def _ended(
    ages_s: Sequence[float], lasted: Sequence[float], position: int, within_s: float
) -> float:
    """Return the Poisson binomial probability that ``position`` leases have ended by then."""
    fewer = [1.0] + [0.0] * (position - 1)  # probabilities of 0, 1, 2 … ends
    for age in ages_s:
        chance = _ends(age, lasted, within_s)
        for number in range(position - 1, 0, -1):
            fewer[number] += chance * (fewer[number - 1] - fewer[number])
        fewer[0] *= 1 - chance
    return 1 - sum(fewer)


def _ends(age_s: float, lasted: Sequence[float], within_s: float) -> float:
    """Return the probability that one lease has ended by then."""
    past = bisect_right(lasted, age_s)
    longer = len(lasted) - past
    if not longer:
        return MIDDLE if within_s >= ANY_MINUTE_S else EARLY
    return (bisect_right(lasted, age_s + within_s) - past) / (longer + 1)
