"""Fair shares of projects: quota first, then a part of the surplus (R4-R7).

``divide`` divides one parent's total among its children. ``fair_shares`` applies it level by level:
each child's share is the total of its own children. A parent's guarantee beyond the quotas of its
children is guaranteed to the children that request more (R5a). Only whole units are given. Rounding
remainders go to the largest fractions. A requested part of a GPU counts as one GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU, Amounts, Bounds
from benchpool_scheduler.core.jobs.tree import Branch, Tree

GRAIN = (WHOLE_GPU, 1, 1)
"""Amount divided as one unit, for each resource."""


@dataclass(frozen=True, slots=True)
class Demand:
    """Demand of one project for one resource. Its position among siblings is its age, oldest first.

    Attributes:
        quota: Guaranteed units. None means unlimited.
        limit: Most units it may hold, or None.
        weight: Weight for the surplus. 0 earns none.
        demand: Units held plus requested.
        young: Part of the demand that is not long-running, or None for all of it.
    """

    quota: int | None
    limit: int | None
    weight: float
    priority: int
    demand: int
    young: int | None = None

    @property
    def most(self) -> int:
        """Return the most units it can use: its demand within its limit."""
        return self.demand if self.limit is None else min(self.demand, self.limit)

    @property
    def most_young(self) -> int:
        """Return the most units it can use without its long-running jobs."""
        return self.most if self.young is None else min(self.young, self.most)


def divide(total: int, siblings: Sequence[Demand]) -> tuple[list[int], int]:
    """Divide ``total`` units. Return the shares in order, and the unassigned rest.

    Guarantees may exceed the total. Each is then served in full, and nothing is left (R4). The
    surplus goes by priority bucket, and inside a bucket by weight (R5). Demand that is not
    long-running is served first.

        >>> a = Demand(quota=2, limit=None, weight=1, priority=0, demand=6)
        >>> b = Demand(quota=2, limit=None, weight=3, priority=0, demand=6)
        >>> divide(8, [a, b])
        ([3, 5], 0)
        >>> divide(15, [a, b])
        ([6, 6], 3)
        >>> divide(8, [Demand(quota=2, limit=None, weight=1, priority=0, demand=6, young=1), b])
        ([2, 6], 0)
    """
    most = [sibling.most for sibling in siblings]
    if sum(most) <= total and all(sibling.weight > 0 for sibling in siblings):
        return most, total - sum(most)
    shares = [
        min(total if sibling.quota is None else sibling.quota, wanted)
        for sibling, wanted in zip(siblings, most, strict=True)
    ]
    rest = max(0, total - sum(shares))
    for priority in sorted({c.priority for c in siblings}, reverse=True) if rest else ():
        bucket = [i for i, c in enumerate(siblings) if c.priority == priority and c.weight > 0]
        if any(siblings[i].young is not None for i in bucket):
            first = [max(share, siblings[i].most_young) for i, share in enumerate(shares)]
            rest = _serve(rest, bucket, siblings, first, shares)
        rest = _serve(rest, bucket, siblings, most, shares)
    return shares, rest


def _serve(
    rest: int, bucket: list[int], siblings: Sequence[Demand], most: list[int], shares: list[int]
) -> int:
    """Divide the surplus among the bucket by weight. Return the rest.

    A sibling that needs no more than its slice is served and leaves the division. This enlarges the
    slices of the other siblings. When no sibling leaves, the slices are final up to rounding.
    """
    wanting = [i for i in bucket if most[i] > shares[i]]
    weights = dict(zip(wanting, _whole([siblings[i].weight for i in wanting]), strict=True))
    while rest and wanting:
        whole = sum(weights[i] for i in wanting)
        content = [i for i in wanting if (most[i] - shares[i]) * whole <= rest * weights[i]]
        if not content:
            return _round(rest, wanting, weights, whole, shares)
        for i in content:
            rest -= most[i] - shares[i]
            shares[i] = most[i]
        wanting = [i for i in wanting if most[i] > shares[i]]
    return rest


def _whole(weights: Sequence[float]) -> list[int]:
    """Return integers in exactly the proportion of the weights."""
    if all(isinstance(weight, int) or weight.is_integer() for weight in weights):
        return [int(weight) for weight in weights]
    exact = [Fraction(weight) for weight in weights]
    scale = lcm(*(weight.denominator for weight in exact))
    return [int(weight * scale) for weight in exact]


def _round(
    rest: int, wanting: list[int], weights: dict[int, int], whole: int, shares: list[int]
) -> int:
    """Give whole slices, then one unit each to the largest remainders, then to older projects."""
    left = rest
    cut_off: list[tuple[int, int]] = []
    for i in wanting:
        part, remainder = divmod(rest * weights[i], whole)
        shares[i] += part
        left -= part
        cut_off.append((-remainder, i))
    for _, i in sorted(cut_off)[:left]:
        shares[i] += 1
    return 0


def divide_guarantee(guarantee: int, siblings: Sequence[Demand]) -> list[int | None]:
    """Return the guarantee of each child of a parent. None means unlimited (R5a).

    A guarantee is the child's quota plus its part of the parent's guarantee beyond all quotas. That
    part is divided like a surplus (R5), among the children that request more than their quota.

    Args:
        guarantee: Units that the parent is guaranteed.
        siblings: Demands of the children, with weight 1 if none is configured.

        >>> a = Demand(quota=0, limit=None, weight=1, priority=0, demand=6)
        >>> b = Demand(quota=2, limit=None, weight=1, priority=0, demand=3)
        >>> divide_guarantee(6, [a, b])
        [3, 3]
        >>> divide_guarantee(6, [a, replace(b, demand=0)])
        [4, 2]
        >>> divide_guarantee(1, [a, b])
        [0, 2]
    """
    quotas = [sibling.quota for sibling in siblings]
    written = [quota for quota in quotas if quota is not None]
    rest = guarantee - sum(written)
    if rest <= 0 or len(written) < len(quotas):
        return quotas
    beyond = [
        replace(it, quota=0, limit=None, demand=max(0, it.most - quota), young=None)
        for it, quota in zip(siblings, written, strict=True)
    ]
    return [quota + more for quota, more in zip(written, divide(rest, beyond)[0], strict=True)]


@dataclass(frozen=True, slots=True)
class Deserved:
    """Fair share and guarantee of every project, by age.

    A guarantee is a quota plus a part of the parent's guarantee (R5a). None means unlimited.
    """

    shares: list[Amounts]
    guarantees: list[Bounds]


def fair_shares(
    tree: Tree,
    total: Amounts,
    demands: Sequence[Amounts],
    usage_weight: float = 0.0,
    young: Sequence[Amounts] | None = None,
) -> Deserved:
    """Return fair share and guarantee of every project, by age.

    Args:
        total: Amounts of the pool: ready nodes, less the GPUs kept for benches.
        demands: Held plus requested amounts of each leaf. Those of parents are computed here.
        usage_weight: Strength of past use (R7). 0 means off.
        young: Demands without long-running jobs, or None if no job is long-running.
    """
    columns = [
        _column(tree, total, demands, young, resource, usage_weight)
        if any(demand[resource] for demand in demands)
        else ([0] * len(tree.branches), [branch.quota[resource] for branch in tree.branches])
        for resource in range(3)
    ]
    shares, guarantees = zip(*columns, strict=True)
    return Deserved(
        [Amounts(*three) for three in zip(*shares, strict=True)],
        list(zip(*guarantees, strict=True)),
    )


def _column(
    tree: Tree,
    total: Amounts,
    demands: Sequence[Amounts],
    young: Sequence[Amounts] | None,
    resource: int,
    usage_weight: float,
) -> tuple[list[int], list[int | None]]:
    """Return fair shares and guarantees of one resource, by age."""
    grain = GRAIN[resource]
    wanted = _wanted(tree, demands, resource)
    early = None if young is None else _wanted(tree, young, resource)
    shares = [0] * len(tree.branches)
    guarantees = [branch.quota[resource] for branch in tree.branches]
    levels = [(-1, tree.tops, total[resource] // grain)]
    for parent, children, amount in levels:
        branches = [tree.branches[i] for i in children]
        asking = [wanted[branch.index] > 0 for branch in branches]
        weights = bent_weights(branches, asking, resource, usage_weight)
        siblings = [
            Demand(
                _whole_units(branch.quota[resource], grain),
                _whole_units(branch.limit[resource], grain),
                weight,
                branch.priority,
                wanted[branch.index],
                None if early is None else early[branch.index],
            )
            for branch, weight in zip(branches, weights, strict=True)
        ]
        if parent >= 0 and guarantees[parent] != 0:
            even = [
                replace(sibling, weight=branch.rest_weights[resource])
                for sibling, branch in zip(siblings, branches, strict=True)
            ]
            above = guarantees[parent]
            most = total[resource] if above is None else min(above, total[resource])
            for position, quota in enumerate(divide_guarantee(most // grain, even)):
                guarantees[children[position]] = None if quota is None else quota * grain
                siblings[position] = replace(siblings[position], quota=quota)
        for child, share in zip(children, divide(amount, siblings)[0], strict=True):
            shares[child] = share * grain
            if tree.branches[child].children:
                levels.append((child, tree.branches[child].children, share))
    return shares, guarantees


def _wanted(tree: Tree, demands: Sequence[Amounts], resource: int) -> list[int]:
    """Return the demand of every project in whole units, with that of its children."""
    wanted = [-(-demand[resource] // GRAIN[resource]) for demand in demands]
    for top in tree.tops:
        _climb(tree, wanted, resource, top)
    return wanted


def _whole_units(bound: int | None, grain: int) -> int | None:
    return None if bound is None else bound // grain


def _climb(tree: Tree, wanted: list[int], resource: int, index: int) -> int:
    """Add the demand of a project's children to it. Return the sum, within the project's limit."""
    branch = tree.branches[index]
    for child in branch.children:
        wanted[index] += _climb(tree, wanted, resource, child)
    limit = _whole_units(branch.limit[resource], GRAIN[resource])
    return wanted[index] if limit is None else min(wanted[index], limit)


def bent_weights(
    branches: Sequence[Branch], asking: Sequence[bool], resource: int, strength: float
) -> list[float]:
    """Return the weights of siblings for a resource, adjusted by past use (R7).

    Let w be a sibling's part of all weights and u its part of all past use, both among requesting
    siblings (R6). The adjusted weight is ``max(0, w + strength * (w - u))``. A project that used
    more than its part thus gets less now.
    """
    weights = [branch.weights[resource] for branch in branches]
    among = [i for i, asks in enumerate(asking) if asks]
    whole = sum(weights[i] for i in among)
    used = sum(branches[i].used_gpu_s for i in among)
    if not strength or not used or not whole:
        return weights
    parts = [weight / whole for weight in weights]
    return [
        max(0.0, part + strength * (part - branch.used_gpu_s / used))
        for part, branch in zip(parts, branches, strict=True)
    ]
