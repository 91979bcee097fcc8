"""Choice of the replica for a request, as properties of the pure function."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from benchpool_scheduler.gate import Backend
from benchpool_scheduler.gate.balancing import choose

IDS = some.lists(some.sampled_from("abcdefgh"), unique=True, max_size=8)


def replicas(ids: list[str]) -> list[Backend]:
    return [Backend(one, "127.0.0.1", 4000 + ord(one)) for one in ids]


@given(
    IDS,
    some.dictionaries(some.sampled_from("abcdefgh"), some.integers(0, 5)),
    some.dictionaries(some.sampled_from("abcdefgh"), some.integers(0, 100)),
    some.sets(some.sampled_from("abcdefgh")),
)
def test_chosen_replica_has_fewest_requests_in_flight(
    ids: list[str], loads: dict[str, int], turns: dict[str, int], refused: set[str]
) -> None:
    chosen = choose(replicas(ids), loads, turns, refused)
    left = [one for one in ids if one not in refused]
    if not left:
        assert chosen is None
        return
    assert chosen is not None
    assert chosen.id in left
    least = min(loads.get(one, 0) for one in left)
    assert loads.get(chosen.id, 0) == least
    equals = [one for one in left if loads.get(one, 0) == least]
    assert turns.get(chosen.id, 0) == min(turns.get(one, 0) for one in equals)


@given(IDS.filter(bool), some.integers(1, 40))
def test_equal_replicas_get_equal_requests(ids: list[str], requests: int) -> None:
    turns: dict[str, int] = {}
    got: Counter[str] = Counter()
    for turn in range(1, requests + 1):
        chosen = choose(replicas(ids), {}, turns)
        assert chosen is not None
        turns[chosen.id] = turn
        got[chosen.id] += 1
    assert max(got.values()) - min(got[one] for one in ids) <= 1


@given(IDS.filter(bool), some.lists(some.booleans(), max_size=60))
def test_open_request_loads_differ_by_at_most_one(ids: list[str], arrivals: list[bool]) -> None:
    loads: Counter[str] = Counter()
    for _ in arrivals:
        chosen = choose(replicas(ids), loads, {})
        assert chosen is not None
        loads[chosen.id] += 1
    assert max(loads.values(), default=0) - min(loads[one] for one in ids) <= 1
