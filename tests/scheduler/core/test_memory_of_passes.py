"""What a pass makes is gone with it: a pool that decides all day does not grow by that.

Parts that know each other stay in memory until the collector looks at everything, which it does
rarely, since it stops every thread meanwhile (``service.process``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import pytest

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.forecast.forecast import forecast
from benchpool_scheduler.core.model import Snapshot
from benchpool_scheduler.core.plan import decide, decide_on
from benchpool_scheduler.simulation.shapes.builders import SHAPES

NODES = 12


def _pass_on_a_kept_board(pool: Snapshot) -> Callable[[], object]:
    state = ClusterState.of(pool)
    return lambda: decide_on(state, pool.now_s)


WORKS: dict[str, Callable[[Snapshot], Callable[[], object]]] = {
    "a board": lambda pool: lambda: ClusterState.of(pool),
    "a pass": lambda pool: lambda: decide(pool),
    "a pass on a kept board": _pass_on_a_kept_board,
    "a forecast": lambda pool: lambda: forecast(pool, {}, most_passes=16),
}


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what other tests left is not looked at again
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("info", WORKS)
@pytest.mark.parametrize("signature", ["fill", "drain", "swap", "blocked", "gang", "cycle"])
@pytest.mark.usefixtures("without_collector")
def test_nothing_of_it_waits_for_a_collection(signature: str, info: str) -> None:
    do = WORKS[info](SHAPES[signature].build(max(NODES, SHAPES[signature].least)).snapshot)
    do()
    gc.collect()
    do()
    assert gc.collect() == 0
