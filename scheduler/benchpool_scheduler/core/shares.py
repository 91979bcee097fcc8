"""What each project deserves now: quota first, then its part of the surplus (R4-R7).

The division of one parent's total among its children is ``divide``; ``fair_shares`` applies it
level by level, each child's share being the total of its own children. Whole units only; what
rounding cuts off goes to the largest remainders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchpool_scheduler.core.amounts import NOTHING, Amounts
from benchpool_scheduler.core.tree import Branch, Tree


@dataclass(frozen=True, slots=True)
class Claim:
    """What one project may say of one resource; its position is its age, oldest first.

    Attributes:
        quota: Guaranteed units, None for unlimited. ``limit``: the most it may hold.
        weight: Its part of the surplus; 0 for none. ``demand``: units held plus asked for.
    """

    quota: int | None
    limit: int | None
    weight: float
    priority: int
    demand: int

    @property
    def most(self) -> int:
        """Return the most it can use: its demand within its limit."""
        return self.demand if self.limit is None else min(self.demand, self.limit)


def divide(total: int, claims: Sequence[Claim]) -> tuple[list[int], int]:
    """Divide ``total`` units; return the shares in order and the rest that is nobody's share.

    Guarantees may exceed the total: each is served in full, and nothing is left over (R4). The
    surplus goes by priority bucket, inside a bucket by weight (R5).

        >>> a = Claim(quota=2, limit=None, weight=1, priority=0, demand=6)
        >>> b = Claim(quota=2, limit=None, weight=3, priority=0, demand=6)
        >>> divide(8, [a, b])
        ([3, 5], 0)
        >>> divide(15, [a, b])
        ([6, 6], 3)
    """
    shares = [min(total if c.quota is None else c.quota, c.most) for c in claims]
    rest = max(0, total - sum(shares))
    for priority in sorted({c.priority for c in claims}, reverse=True):
        bucket = [i for i, c in enumerate(claims) if c.priority == priority and c.weight > 0]
        rest = _serve(rest, bucket, claims, shares)
    return shares, rest


def _serve(rest: int, bucket: list[int], claims: Sequence[Claim], shares: list[int]) -> int:
    """Give the bucket its surplus by weight; return what it leaves.

    Whoever wants no more than its slice is served and drops out, which makes the others' slices
    larger; when nobody drops out, the slices are final up to rounding.
    """
    open_claims = [i for i in bucket if claims[i].most > shares[i]]
    while rest and open_claims:
        weights = {i: Fraction(claims[i].weight) for i in open_claims}
        whole = sum(weights.values())
        slices = {i: rest * weight / whole for i, weight in weights.items()}
        content = [i for i in open_claims if claims[i].most - shares[i] <= slices[i]]
        if not content:
            return _round(rest, slices, shares)
        for i in content:
            rest -= claims[i].most - shares[i]
            shares[i] = claims[i].most
        open_claims = [i for i in open_claims if i not in content]
    return rest


def _round(rest: int, slices: Mapping[int, Fraction], shares: list[int]) -> int:
    """Give whole slices, then one unit each to the largest cut-off part, then to the older."""
    for i, part in slices.items():
        shares[i] += int(part)
        rest -= int(part)
    for i in sorted(slices, key=lambda i: (int(slices[i]) - slices[i], i))[:rest]:
        shares[i] += 1
    return 0


def fair_shares(
    tree: Tree, total: Amounts, demands: Sequence[Amounts], usage_weight: float = 0.0
) -> list[Amounts]:
    """Return the fair share of every project, by age.

    Args:
        total: What the pool has: ready nodes, less what is kept for benches.
        demands: Held plus asked for, of each leaf; of a parent it is worked out here.
        usage_weight: Strength of the memory of past use (R7); 0 is off.
    """
    wanted = _wanted(tree, demands)
    shares = [NOTHING] * len(tree.branches)

    def descend(children: tuple[int, ...], amounts: Amounts) -> None:
        if not children:
            return
        branches = [tree.branches[i] for i in children]
        weights = bent_weights(branches, usage_weight)
        columns = [divide(amounts[r], _claims(branches, wanted, weights, r))[0] for r in range(3)]
        for position, child in enumerate(children):
            shares[child] = Amounts(*(column[position] for column in columns))
            descend(tree.branches[child].children, shares[child])

    descend(tree.tops, total)
    return shares


def _claims(
    branches: Sequence[Branch],
    wanted: Sequence[Amounts],
    weights: Callable[[int, int], float],
    resource: int,
) -> list[Claim]:
    return [
        Claim(
            quota=branch.quota[resource],
            limit=branch.limit[resource],
            weight=weights(position, resource),
            priority=branch.priority,
            demand=wanted[branch.index][resource],
        )
        for position, branch in enumerate(branches)
    ]


def _wanted(tree: Tree, demands: Sequence[Amounts]) -> list[Amounts]:
    """Return the demand of every project; a parent's is its children's within their limits."""
    wanted = list(demands)

    def climb(index: int) -> Amounts:
        branch = tree.branches[index]
        for child in branch.children:
            wanted[index] += climb(child)
        return Amounts(
            *(
                amount if bound is None else min(amount, bound)
                for amount, bound in zip(wanted[index], branch.limit, strict=True)
            )
        )

    for top in tree.tops:
        climb(top)
    return wanted


def bent_weights(branches: Sequence[Branch], strength: float) -> Callable[[int, int], float]:
    """Return the weight of a sibling for a resource, bent by past use (R7).

    With w the sibling's part of all weights and u its part of all past use, the bent weight is
    ``max(0, w + strength * (w - u))``: who used more than its part gets less now.
    """
    used = sum(branch.used_gpu_s for branch in branches)

    def weight(position: int, resource: int) -> float:
        branch = branches[position]
        whole = sum(sibling.weights[resource] for sibling in branches)
        if not strength or not used or not whole:
            return branch.weights[resource]
        part = branch.weights[resource] / whole
        return max(0.0, part + strength * (part - branch.used_gpu_s / used))

    return weight
