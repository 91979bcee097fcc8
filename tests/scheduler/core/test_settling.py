"""A pool in which nothing happens but what passes decide comes to rest (R20)."""

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
    "elastic": (83, 1850, 1963, 3529, 3751),
    "levels": (2621,),
    "elastic-models": (290, 1817),
}
"""Pools that once did not come to rest, or only slowly, or could not be decided at all."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_pool_comes_to_rest_in_a_few_passes(kind: str) -> None:
    """R20: whoever is stopped may claim from others in the next pass, but that has an end."""
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
"""So many pools of each scattered kind, in so many tests: 18,000 in all."""


@pytest.mark.parametrize("piece", range(PIECES))
@pytest.mark.parametrize("kind", SCATTERED)
def test_no_plan_breaks_a_rule_wherever_jobs_run(kind: str, piece: int) -> None:
    """R1, R8 and R10 in the state after each plan, and R20: it comes to rest.

    No pass would place jobs as chance has, so that more of them may act than elsewhere.
    """
    for number in range(piece * PIECE, piece * PIECE + examples(PIECE)):
        pool = drawn_pool(number, KINDS[kind])
        assert complaint(pool) == "", f"{number}\n{as_case(pool)}"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_no_plan_breaks_a_rule_while_victims_leave(kind: str) -> None:
    """R1, R8 and R10, also where a promise is kept for a while."""
    for number in range(examples(150)):
        pool = drawn_pool(number, KINDS[kind])
        assert broken_on_the_way(pool) == (), f"{number}\n{as_case(pool)}"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_rests_stays_so(kind: str) -> None:
    """R20: five further passes do nothing."""
    for number in range(examples(20)):
        still = at_rest(drawn_pool(number, KINDS[kind]))
        for _ in range(5):
            assert after(still, decide(still)) == still, as_case(still)
