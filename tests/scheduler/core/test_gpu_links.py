"""GPUs within a node are chosen by their links and the CPU socket (R12)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.capacity.bits import members, set_of
from benchpool_scheduler.core.capacity.links import choose
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.core.plan import decide

EIGHT = (1 << 8) - 1
PAIRS = tuple(tuple(2 if a // 2 == b // 2 else 1 for b in range(8)) for a in range(8))
CUBE = tuple(
    tuple({0: 0, 1: 2, 2: 1, 3: 0}[(a ^ b).bit_count()] for b in range(8)) for a in range(8)
)
SOCKETS = (0, 0, 0, 0, 1, 1, 1, 1)


def gpus_started(
    links: tuple[tuple[int, ...], ...], *jobs: JobFacts, **facts: Any
) -> list[list[str]]:
    gpus = tuple(GpuId(str(at)) for at in range(8))
    node = Node(NodeName("box"), gpus, links=links, **facts)
    pool = Snapshot((node,), (Project(ProjectName("vision"), quota=8),), jobs)
    return [
        sorted(gpu for worker in command.workers for gpu in worker.gpus)
        for command in decide(pool).commands
        if isinstance(command, Start)
    ]


def job(name: str, gpus: int) -> JobFacts:
    return JobFacts(JobId(name), ProjectName("vision"), spec=JobSpec(gpus=gpus))


def test_two_gpus_are_linked() -> None:
    assert gpus_started(PAIRS, job("one", 1), job("two", 2)) == [["0"], ["2", "3"]]


def test_single_gpu_comes_from_broken_pair() -> None:
    held = (Worker(NodeName("box"), (GpuId("5"),)),)
    busy = replace(job("busy", 1), activity=Activity.RUNNING, held=held)
    assert gpus_started(PAIRS, busy, job("one", 1)) == [["4"]]


def test_job_without_links_stays_on_one_socket() -> None:
    started = gpus_started((), job("one", 1), job("four", 4), job("three", 3), sockets=SOCKETS)
    assert started == [["0"], ["4", "5", "6", "7"], ["1", "2", "3"]]


def test_socket_decides_between_equal_links() -> None:
    equal = tuple((1,) * 8 for _ in range(8))
    started = gpus_started(equal, job("one", 1), job("four", 4), sockets=SOCKETS)
    assert started == [["0"], ["4", "5", "6", "7"]]


def test_link_outweighs_socket() -> None:
    across = tuple(tuple(int(a + 4 == b or b + 4 == a) for b in range(8)) for a in range(8))
    assert gpus_started(across, job("two", 2), sockets=SOCKETS) == [["0", "4"]]


def test_lowest_positions_are_taken_without_links() -> None:
    assert gpus_started((), job("two", 2), job("three", 3)) == [["0", "1"], ["2", "3", "4"]]


def total(links: tuple[tuple[int, ...], ...], some: int) -> int:
    return sum(links[a][b] + links[b][a] for a, b in combinations(members(some), 2))


@given(st.integers(1, EIGHT), st.integers(1, 8), st.sampled_from([PAIRS, CUBE]))
def test_chosen_set_is_closest_of_its_size(
    free: int, count: int, links: tuple[tuple[int, ...], ...]
) -> None:
    count = min(count, free.bit_count())
    chosen = choose(links, (), 0, free, count)
    assert chosen & ~free == 0
    assert chosen.bit_count() == count
    best = max(total(links, set_of(some)) for some in combinations(members(free), count))
    assert total(links, chosen) == best


@given(st.integers(1, (1 << 16) - 1), st.integers(1, 16))
def test_whole_groups_are_found_in_large_node(free: int, count: int) -> None:
    groups = tuple(tuple(int(a // 4 == b // 4) for b in range(16)) for a in range(16))
    count = min(count, free.bit_count())
    chosen = choose(groups, (), 0, free, count)
    assert chosen.bit_count() == count
    most = max((free >> (4 * group) & 15).bit_count() for group in range(4))
    largest = max((chosen >> (4 * group) & 15).bit_count() for group in range(4))
    assert largest == min(count, most)


@given(st.integers(1, EIGHT), st.integers(1, EIGHT), st.integers(1, 4))
def test_held_gpus_attract_their_neighbours(held: int, free: int, more: int) -> None:
    free &= ~held
    more = min(more, free.bit_count())
    chosen = choose(PAIRS, (), held, free, more)
    assert chosen & held == held
    assert (chosen & free).bit_count() == more
