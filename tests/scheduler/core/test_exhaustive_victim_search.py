"""One claim on a tiny full pool, compared with all sets of victims by exhaustive search (R15-R19).

A valid set takes its victims one after another, each while its own project is above its due. It
gives no victim the right to reclaim. It suffices when the claimant then has a place and no subset
suffices. The core does not search, because a pass is bounded. It may therefore find a set that
loses more than the best one, or disturbs more users. These tests count and bound how often.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, note, settings

from benchpool_scheduler.core.model import GpuId, Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.written import as_case
from benchpool_support.plans import movers, preempts, starts
from benchpool_support.reference.claims import (
    Victims,
    answers,
    disturbance,
    lost_gpu_s,
    one_by_one,
    pieces,
    taken,
)
from benchpool_support.reference.holdings import job_named
from benchpool_support.reference.places import startable
from benchpool_support.reference.shares import fair_shares
from benchpool_support.tiny_claims import CLAIM, tiny_claims

pytestmark = pytest.mark.slow  # many examples are needed to measure frequencies

MOST_PIECES = 8
"""Limit of pieces that can be taken: larger pools are skipped, because every set is tried."""


@dataclass
class Tried:
    """Outcomes of the claims of many pools."""

    outcomes: Counter[str] = field(default_factory=Counter)
    excess: list[float] = field(default_factory=list)
    more_disturbed: int = 0


def gpus_given(pool: Snapshot) -> frozenset[GpuId]:
    """Return the GPUs taken from victims for the claim, or an empty set."""
    plan = decide(pool)
    return frozenset(
        gpu
        for command in preempts(plan)
        if command.claimant == CLAIM and command.job not in movers(plan)
        for worker in command.workers
        for gpu in worker.gpus
    )


def gpus_of(victims: Victims) -> frozenset[GpuId]:
    """Return the GPUs that a set of victims releases."""
    return frozenset(g for workers in taken(victims).values() for w in workers for g in w.gpus)


def judge(pool: Snapshot, tried: Tried) -> None:
    """Compare one decision with all possible decisions."""
    claim = job_named(pool, CLAIM)
    if startable(pool, claim, claim.spec.least_workers) or len(pieces(pool)) > MOST_PIECES:
        return
    note(as_case(pool))
    possible, given_up = answers(pool, claim, claim.spec.least_workers), gpus_given(pool)
    if movers(decide(pool)):
        tried.outcomes["met by a move"] += 1
        assert CLAIM in starts(decide(pool))
    elif not possible:
        tried.outcomes["none is lawful"] += 1
        assert not given_up, "nobody is stopped where no lawful set exists"
    elif not given_up:
        shares = fair_shares(pool)
        spared = not any(
            one_by_one(pool, shares, claim, claim.spec.least_workers, victims)
            for victims in possible
        )
        tried.outcomes["shrunk it is within its due" if spared else "missed"] += 1
    else:
        tried.outcomes["met"] += 1
        ours = [victims for victims in possible if gpus_of(victims) == given_up]
        if not ours:
            tried.outcomes["not minimal"] += 1
            return
        least = min(disturbance(pool, victims) for victims in possible)
        tried.more_disturbed += disturbance(pool, ours[0]) > least
        best = min(lost_gpu_s(pool, victims) for victims in possible)
        tried.excess.append(lost_gpu_s(pool, ours[0]) / best - 1 if best else 0.0)


def try_many(examples: int, *, equally_fair: bool, equal_progress: bool = False) -> Tried:
    """Judge this number of random pools."""
    tried = Tried()

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(tiny_claims(equally_fair=equally_fair, equal_progress=equal_progress))
    def each(pool: Snapshot) -> None:
        judge(pool, tried)

    each()
    return tried


def test_claim_is_met_by_lawful_minimal_victim_set() -> None:
    """R15-R18: of about 180 valid claims none is missed, and none takes too much."""
    outcomes = try_many(1200, equally_fair=False).outcomes
    assert outcomes["met"] > 100
    assert outcomes["none is lawful"] > 100
    assert outcomes["missed"] == 0
    assert outcomes["not minimal"] == 0


def test_cheapest_of_equally_fair_victim_sets_is_chosen() -> None:
    """R18: at most 1 % of the claims lose more than the best set; the mean excess is below 0.5
    %.
    """
    tried = try_many(1200, equally_fair=True)
    assert len(tried.excess) > 150
    assert tried.outcomes["missed"] == 0
    assert sum(excess > 0 for excess in tried.excess) <= 0.01 * len(tried.excess)
    assert sum(tried.excess) <= 0.005 * len(tried.excess)


def test_equal_loss_victim_set_nearly_always_disturbs_fewest() -> None:
    """R18: at most 1 of 200 claims stops one job more, or disturbs one user more."""
    tried = try_many(1500, equally_fair=True, equal_progress=True)
    assert len(tried.excess) > 300
    assert tried.more_disturbed <= 0.005 * len(tried.excess)
