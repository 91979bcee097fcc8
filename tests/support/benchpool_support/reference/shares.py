"""Guarantees and fair shares by filling vessels (R4-R7, R5a).

Each project is a vessel whose width is its weight and whose volume is its open demand. Surplus
poured in reaches the same height in all vessels that are not full. The height at which all of it is
used gives the exact slices. Whole units and the largest cut-off parts give the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from benchpool_scheduler.core.model import Activity, Project, ProjectName, Snapshot
from benchpool_support.reference.holdings import (
    CPUS,
    MEMORY,
    NOTHING,
    Amounts,
    Bounds,
    bounds,
    children,
    need,
    plus,
    times,
    weights,
)
from benchpool_support.reference.places import possible

UNITS = (1, 1000, 1024)
"""Number of the smallest units in one GPU, one CPU core and one GiB."""


@dataclass(frozen=True, slots=True)
class Vessel:
    """One project in a division, in whole units: its guarantee, its maximum use, its weight."""

    quota: int | None
    most: int
    weight: Fraction
    priority: int


def exact_slices(total: int, vessels: Sequence[Vessel]) -> list[Fraction]:
    """Return the share of each vessel before rounding."""
    got = [Fraction(min(total if v.quota is None else v.quota, v.most)) for v in vessels]
    rest = max(Fraction(0), total - sum(got, Fraction(0)))
    for priority in sorted({v.priority for v in vessels}, reverse=True):
        bucket = [i for i, v in enumerate(vessels) if v.priority == priority and v.weight > 0]
        depth = {i: Fraction(vessels[i].most - got[i]) / vessels[i].weight for i in bucket}
        height = _height(rest, {i: vessels[i].weight for i in bucket}, depth)
        for i in bucket:
            poured = vessels[i].weight * min(height, depth[i])
            got[i] += poured
            rest -= poured
    return got


def _height(
    rest: Fraction, width: Mapping[int, Fraction], depth: Mapping[int, Fraction]
) -> Fraction:
    """Return the height of ``rest`` in vessels of these widths and depths, at most all full."""
    below = Fraction(0)
    for top in sorted({*depth.values()}):
        wide = sum((width[i] for i in depth if depth[i] >= top), Fraction(0))
        if rest <= wide * (top - below):
            return below + rest / wide if wide else below
        rest -= wide * (top - below)
        below = top
    return below


def whole_slices(total: int, vessels: Sequence[Vessel]) -> list[int]:
    """Return the shares in whole units: rounded down, then one each to the largest cut-off part."""
    exact = exact_slices(total, vessels)
    whole = [int(share) for share in exact]
    for priority in {v.priority for v in vessels}:
        bucket = [i for i, v in enumerate(vessels) if v.priority == priority]
        cut = sum((exact[i] - whole[i] for i in bucket), Fraction(0))
        bucket.sort(key=lambda i: (whole[i] - exact[i], i))
        for i in bucket[: round(cut)]:
            whole[i] += 1
    return whole


def demands(snapshot: Snapshot) -> dict[ProjectName, Amounts]:
    """Return the demand of each project and its descendants, held or not, within their limits.

    A waiting job that can never run has no demand (R6).
    """
    asked = {project.name: NOTHING for project in snapshot.projects}
    for job in snapshot.jobs:
        if job.activity is not Activity.QUEUED or possible(snapshot, job):
            asked[job.project] = plus(asked[job.project], times(need(job), job.spec.workers))

    def climb(project: Project) -> Amounts:
        for child in children(snapshot, project.name):
            asked[project.name] = plus(asked[project.name], climb(child))
        limits = bounds(project, "limit")
        own = asked[project.name]
        return tuple(  # type: ignore[return-value]
            amount if limit is None else min(amount, limit)
            for amount, limit in zip(own, limits, strict=True)
        )

    for top in children(snapshot, None):
        climb(top)
    return asked


def pool_total(snapshot: Snapshot, asked: Amounts) -> Amounts:
    """Return the resources for training: ready nodes less benches; the demand where unbounded."""
    ready = [node for node in snapshot.nodes if node.ready]
    gpus = Fraction(sum(max(0, len(node.gpus) - node.kept) for node in ready))
    cpus = memory = Fraction(0)
    for node in ready:
        cpus += asked[CPUS] if node.cpus is None else Fraction(round(node.cpus * 1000), 1000)
        memory += (
            asked[MEMORY]
            if node.memory_gib is None
            else Fraction(round(node.memory_gib * 1024), 1024)
        )
    return gpus, cpus, memory


def guarantees(snapshot: Snapshot) -> dict[ProjectName, Bounds]:
    """Return the guarantee of every project: its quota, and its part of the parent's remainder.

    The parent's guarantee of the pool beyond the quotas of its children is divided among the
    children that request more than their quota. It is divided by the written weights, or equally.
    """
    asked, pool = demands(snapshot), pool_total(snapshot, _leaf_sum(snapshot))
    found: dict[ProjectName, list[Fraction | None]] = {
        project.name: [*bounds(project, "quota")] for project in snapshot.projects
    }

    def descend(parent: ProjectName) -> None:
        siblings = children(snapshot, parent)
        for resource, unit in enumerate(UNITS):
            above = found[parent][resource]
            above = pool[resource] if above is None else min(above, pool[resource])
            quotas = [bounds(project, "quota")[resource] for project in siblings]
            if not siblings or None in quotas:
                continue  # an unlimited quota leaves nothing
            written = [quota or Fraction(0) for quota in quotas]
            vessels = [
                Vessel(
                    0,
                    max(0, vessel.most - int(quota * unit)),
                    _even(project, resource),
                    project.priority,
                )
                for project, quota, vessel in zip(
                    siblings,
                    written,
                    _vessels(snapshot, siblings, asked, found, resource),
                    strict=True,
                )
            ]
            rest = max(0, int((above - sum(written)) * unit))
            parts = whole_slices(rest, vessels)
            for project, quota, part in zip(siblings, written, parts, strict=True):
                found[project.name][resource] = quota + Fraction(part, unit)
        for project in siblings:
            descend(project.name)

    for top in children(snapshot, None):
        descend(top.name)
    return {name: (three[0], three[1], three[2]) for name, three in found.items()}


def _even(project: Project, resource: int) -> Fraction:
    written = (project.weight, project.cpus.weight, project.memory_gib.weight)[resource]
    return Fraction(1) if written is None else Fraction(written)


def _leaf_sum(snapshot: Snapshot) -> Amounts:
    """Return the demand of all jobs that could ever run."""
    found = NOTHING
    for job in snapshot.jobs:
        if job.activity is not Activity.QUEUED or possible(snapshot, job):
            found = plus(found, times(need(job), job.spec.workers))
    return found


@dataclass(frozen=True, slots=True)
class FairShares:
    """Shares of all projects, and the guaranteed part of them.

    ``rounded`` is true if any slice of GPUs had to be rounded.
    """

    of: Mapping[ProjectName, Amounts]
    guaranteed: Mapping[ProjectName, Bounds]
    rounded: bool


def fair_shares(snapshot: Snapshot) -> FairShares:
    """Return the current fair share of every project."""
    asked = demands(snapshot)
    guaranteed = guarantees(snapshot)
    shares: dict[ProjectName, Amounts] = {}
    rounded = False

    def descend(parent: ProjectName | None, total: Amounts) -> None:
        nonlocal rounded
        siblings = children(snapshot, parent)
        columns: list[list[Fraction]] = []
        for resource, unit in enumerate(UNITS):
            vessels = _vessels(snapshot, siblings, asked, guaranteed, resource)
            units = int(total[resource] * unit)
            columns.append([Fraction(n, unit) for n in whole_slices(units, vessels)])
            if resource == 0:
                rounded |= any(s.denominator > 1 for s in exact_slices(units, vessels))
        for position, project in enumerate(siblings):
            shares[project.name] = (
                columns[0][position],
                columns[1][position],
                columns[2][position],
            )
            descend(project.name, shares[project.name])

    descend(None, pool_total(snapshot, _leaf_sum(snapshot)))
    return FairShares(shares, guaranteed, rounded)


def _vessels(
    snapshot: Snapshot,
    siblings: Sequence[Project],
    asked: Mapping[ProjectName, Amounts],
    guaranteed: Mapping[ProjectName, Sequence[Fraction | None]],
    resource: int,
) -> list[Vessel]:
    bent = _bent(snapshot, siblings, asked, resource)
    vessels: list[Vessel] = []
    for project, weight in zip(siblings, bent, strict=True):
        quota, limit = guaranteed[project.name][resource], bounds(project, "limit")[resource]
        demand = asked[project.name][resource]
        most = demand if limit is None else min(demand, limit)
        unit = UNITS[resource]
        vessels.append(
            Vessel(
                None if quota is None else int(quota * unit),
                int(most * unit),
                weight,
                project.priority,
            )
        )
    return vessels


def _bent(
    snapshot: Snapshot,
    siblings: Sequence[Project],
    asked: Mapping[ProjectName, Amounts],
    resource: int,
) -> list[Fraction]:
    """Return the weights bent by past use, for the projects with a demand (R6, R7)."""
    plain = [weights(project)[resource] for project in siblings]
    strength = Fraction(snapshot.policy.usage_weight)
    asking = [asked[project.name][resource] > 0 for project in siblings]
    pairs = list(zip(siblings, plain, asking, strict=True))
    used = sum((Fraction(p.used_gpu_s) for p, _, asks in pairs if asks), Fraction(0))
    whole = sum((weight for _, weight, asks in pairs if asks), Fraction(0))
    if not strength or not used or not whole:
        return plain
    return [
        max(Fraction(0), w / whole + strength * (w / whole - Fraction(p.used_gpu_s) / used))
        for p, w, _ in pairs
    ]
