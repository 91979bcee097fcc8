"""Claims that their victims would undo in the next pass are not made (R17, R20)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.effects import after
from benchpool_scheduler.core.model import Command, Preempt, ReasonCode, Snapshot
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_scheduler.simulation import cases
from benchpool_scheduler.simulation.report import SUPPORTED
from benchpool_support.drawn_pools import KINDS, drawn_pool
from benchpool_support.settling import settle

FILE = Path(__file__).parent / "cases" / "own-undone-claims.yaml"
POOLS = {case.name: case.snapshot for case in cases.load(FILE, SUPPORTED) if case.snapshot}


def hasty(pool: Snapshot) -> tuple[Command, ...]:
    """Return the commands of a pass that does not look ahead."""
    return decide_on(ClusterState.of(pool), pool.now_s, ahead=False).commands


def before_claim(name: str) -> Snapshot:
    """Return the pool at the first pass in which the claim could be made."""
    pool = POOLS[name]
    while not any(isinstance(command, Preempt) for command in hasty(pool)):
        pool = after(pool, decide(pool))
    return pool


@pytest.mark.parametrize("number", [260683, 680621, 1590248, 1745641])
def test_drawn_pool_with_undone_claims_settles(number: int) -> None:
    names = sorted(KINDS)
    settled = settle(drawn_pool(number, KINDS[names[number % len(names)]]))
    assert not settled.complaint


@pytest.mark.parametrize("name", POOLS)
def test_undone_claim_is_not_made(name: str) -> None:
    plan = decide(before_claim(name))
    assert not any(isinstance(command, Preempt) for command in plan.commands)


@pytest.mark.parametrize("name", POOLS)
def test_look_ahead_leaves_kept_state_unchanged(name: str) -> None:
    pool = before_claim(name)
    state = ClusterState.of(pool)
    assert [decide_on(state, pool.now_s) for _ in range(3)] == [decide(pool)] * 3
    assert decide_on(state, pool.now_s, ahead=False).commands == hasty(pool)


def test_undone_claim_waits_with_reason() -> None:
    pool = before_claim("claim-within-quota-that-its-victim-would-undo")
    reason = next(reason for job, reason in decide(pool).reasons.items() if job == "a7")
    assert reason.code is ReasonCode.POOL_FULL
    assert reason.text == (
        "waits for 2 GPUs: 1 of 10 is free; a job that it may preempt could take the GPUs back at "
        "once"
    )
