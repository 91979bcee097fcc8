"""A pass leaves no garbage behind, so that a deciding pool does not grow.

Objects with reference cycles stay in memory until a full garbage collection. That is rare, because
it stops every thread (``service.process``).
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
    gc.freeze()  # ignores garbage of other tests
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("info", WORKS)
@pytest.mark.parametrize("signature", ["fill", "drain", "swap", "blocked", "gang", "cycle"])
@pytest.mark.usefixtures("without_collector")
def test_pass_leaves_no_cyclic_garbage(signature: str, info: str) -> None:
    do = WORKS[info](SHAPES[signature].build(max(NODES, SHAPES[signature].least)).snapshot)
    do()
    gc.collect()
    do()
    assert gc.collect() == 0
