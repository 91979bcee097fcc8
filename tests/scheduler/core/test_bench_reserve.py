"""Choice of the nodes of GPUs reserved for benches, made by the core (R3)."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.core.benches.reserve import lay_out

NODES = ("a", "b", "c")
by_node = st.dictionaries(st.sampled_from(NODES), st.integers(0, 5))


@given(st.integers(-1, 20), by_node, by_node, st.booleans())
def test_reserve_is_maximal_and_waiting_servers_come_first(
    gpus: int, there: Mapping[str, int], wanted: Mapping[str, int], lends: bool
) -> None:
    usable = {node: there.get(node, 0) for node in NODES}
    found = lay_out(gpus, NODES, usable.__getitem__, wanted, lends=lends)
    assert sum(found.kept.values()) == min(max(0, gpus), sum(usable.values()))
    assert all(0 < kept <= usable[node] for node, kept in found.kept.items())
    served = [min(wanted.get(node, 0), found.kept.get(node, 0)) for node in NODES]
    could = sum(min(wanted.get(node, 0), usable[node]) for node in NODES)
    assert sum(served) >= min(max(0, gpus), could)
    assert found.called == (
        {node: n for node, n in zip(NODES, served, strict=True) if n} if lends else {}
    )


def test_node_without_benches_reserves_nothing_for_waiting_server() -> None:
    found = lay_out(2, ["a"], lambda _: 4, {"z": 2}, lends=True)
    assert (found.kept, found.called) == ({"a": 2}, {})
