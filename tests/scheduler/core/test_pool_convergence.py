"""A pool without external events settles (R20)."""

from __future__ import annotations

import pytest

from benchpool_scheduler.core.model import Snapshot
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_scheduler.simulation.written import as_case
from benchpool_support.drawn_pools import KINDS, drawn_pool
from benchpool_support.examples import examples
from benchpool_support.plans import at_rest
from benchpool_support.settling import FEW_ACTING, broken_on_the_way, settle

TROUBLED = {
    "models": (525, 2763, 3182),
    "elastic": (83, 1850, 1963, 3529, 3751, 308_538),
    "levels": (2621,),
    "elastic-models": (290, 1817, 241_111, 251_011),
    "scattered": (602_818, 694_924),
}
"""Pools that once did not settle, settled slowly, or could not be decided."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_pool_settles_in_few_passes(kind: str) -> None:
    """R20: a stopped job may claim in the next pass, but such chains end."""
    numbers = [*range(examples(150)), *TROUBLED.get(kind, ())]
    pools = {number: drawn_pool(number, KINDS[kind]) for number in numbers}
    wrong = {number: found for number, pool in pools.items() if (found := complaint(pool))}
    assert wrong == {}, as_case(pools[next(iter(wrong))])


def complaint(pool: Snapshot) -> str:
    settled = settle(pool)
    many = settled.acting > FEW_ACTING
    return settled.complaint or (f"{settled.acting} passes act" if many else "")


SCATTERED = [kind for kind in sorted(KINDS) if KINDS[kind].scattered]
PIECE, PIECES = 1125, 8
"""Pools of each scattered kind per test, and number of tests: 18,000 pools in all."""


@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("kind", SCATTERED)
def test_plans_keep_rules_for_random_placements(kind: str, piece: int) -> None:
    """R1, R8 and R10 hold after each plan, and the pool settles (R20).

    Random placements differ from those of a pass, so that more jobs may act than elsewhere.
    """
    for number in range(piece * PIECE, piece * PIECE + examples(PIECE)):
        pool = drawn_pool(number, KINDS[kind])
        assert complaint(pool) == "", f"{number}\n{as_case(pool)}"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_plans_keep_rules_while_victims_leave(kind: str) -> None:
    """R1, R8 and R10, also while a promise is kept."""
    for number in range(examples(150)):
        pool = drawn_pool(number, KINDS[kind])
        assert broken_on_the_way(pool) == (), f"{number}\n{as_case(pool)}"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_settled_pool_stays_settled(kind: str) -> None:
    """R20: five further passes do nothing."""
    for number in range(examples(20)):
        still = at_rest(drawn_pool(number, KINDS[kind]))
        for _ in range(5):
            assert after(still, decide(still)) == still, as_case(still)
