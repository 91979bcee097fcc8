"""The line for build GPUs: who waits where, and for what (R2, R3).

Servers whose GPUs cannot be had now wait in line by the time when they first asked. Each is
*seated* at the node where it will get them soonest; what an earlier one will get there, a later one
does not. Who needs nothing that others still hold is served now.
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
    """What stands between a GPU and a bench; the smallest is had soonest and costs least."""

    FREE = 0
    LEAVING = 1  # its job has its notice
    OVER_QUOTA = 2  # over-quota work that can be paused
    WITHIN_QUOTA = 3  # other work that can be paused, on a GPU that benches may call back


@dataclass(frozen=True, slots=True)
class BenchGpu:
    """A GPU that a bench could get.

    Attributes:
        rank: Place of its model among those that the server accepts, the best is 0.
    """

    gpu: GpuId
    use: Use
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a server gets its GPUs. ``ready``: nobody holds any of them."""

    node: NodeName
    gpus: tuple[BenchGpu, ...]

    @property
    def ready(self) -> bool:
        """Whether all of them can be had now."""
        return all(gpu.use is Use.FREE for gpu in self.gpus)


Offer = Mapping[NodeName, Sequence[BenchGpu]]
"""What a server could get, by node; nodes in order of preference where all else is equal."""


def seat(asked: int, offer: Offer, taken: Iterable[GpuId] = ()) -> Seat | None:
    """Return where so many GPUs of one node are had soonest, None where no node has as many.

    Args:
        taken: GPUs that are for others.

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
    """Seat all who wait, the first first; those for whom there is nothing are left out.

    Args:
        kept: GPUs that are set aside for benches and not leased (R3). Beyond these nobody gives
            way: then only what is free, or being left anyway, can be had.

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
    """Return how many GPUs of each node are wanted back from jobs, for these seats.

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
"""Of fewer ended leases nothing is learned."""
ANY_MINUTE_S = 60.0
"""A lease that is older than all that ended is taken to be even odds to end in so long."""
EARLY, MIDDLE, LATE = 0.06, 0.5, 0.94
"""Four of five starts are to fall between the first and the last (R22), and a few more."""
FURTHEST_S = 31_622_400.0
NEARLY = 1e-9


class LeaseEnds(NamedTuple):
    """When enough held leases have ended, in seconds from now; None where that is not known."""

    earliest_s: float
    likely_s: float | None
    latest_s: float | None


def ends_in(ages_s: Sequence[float], lasted_s: Sequence[float], position: int) -> LeaseEnds | None:
    """Return when the ``position``-th of the held leases ends, as far as it was learned.

    Each is taken to last as one of those that lasted longer than it has, each of these as likely as
    the others, and as likely longer than all of them. So how many have ended by an instant follows.

    Args:
        ages_s: How long each held lease that could make room has lasted so far.
        lasted_s: How long leases that have ended had lasted.

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
    """Return by when so many leases have ended with such a chance, to the second; None if never."""
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
    """Return the chance that at least so many leases have ended by then: a Poisson binomial."""
    fewer = [1.0] + [0.0] * (position - 1)  # the chances of 0, 1, 2 … ends
    for age in ages_s:
        chance = _ends(age, lasted, within_s)
        for number in range(position - 1, 0, -1):
            fewer[number] += chance * (fewer[number - 1] - fewer[number])
        fewer[0] *= 1 - chance
    return 1 - sum(fewer)


def _ends(age_s: float, lasted: Sequence[float], within_s: float) -> float:
    """Return the chance that one lease has ended by then."""
    past = bisect_right(lasted, age_s)
    longer = len(lasted) - past
    if not longer:
        return MIDDLE if within_s >= ANY_MINUTE_S else EARLY
    return (bisect_right(lasted, age_s + within_s) - past) / (longer + 1)
