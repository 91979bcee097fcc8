"""A pool in which nothing happens but what passes decide comes to rest (R20)."""

from __future__ import annotations

import pytest

from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.simulation.passes import after
from benchpool_support.drawn_pools import KINDS, drawn_pool
from benchpool_support.examples import examples
from benchpool_support.plans import at_rest
from benchpool_support.settling import settle
from benchpool_support.written import as_case

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
    wrong = {number: found for number, pool in pools.items() if (found := settle(pool).complaint)}
    assert wrong == {}, as_case(pools[next(iter(wrong))])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_rests_stays_so(kind: str) -> None:
    """R20: five further passes do nothing."""
    for number in range(examples(20)):
        still = at_rest(drawn_pool(number, KINDS[kind]))
        for _ in range(5):
            assert after(still, decide(still)) == still, as_case(still)
