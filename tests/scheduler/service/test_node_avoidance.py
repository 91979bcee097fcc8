"""Times for which a job avoids nodes that refused it, as pure functions."""

from __future__ import annotations

import pytest

from benchpool_scheduler.core.lifecycle.retries import MOST_LOST
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service.cluster_state.node_bars import node_bars
from benchpool_scheduler.service.lifecycle.endings import lost_in_a_row
from benchpool_scheduler.store.records import AttemptRecord, WorkerRecord


def attempt(number: int, *nodes: str, at: float, by: str = EndedBy.NOT_TAKEN) -> AttemptRecord:
    """Return an attempt whose workers on these nodes ended in one way."""
    workers = tuple(
        WorkerRecord(index, node, (f"{node}/0",), ended=at, ended_by=by, text=f"{node} is full")
        for index, node in enumerate(nodes)
    )
    begun = at - 100.0 if by == EndedBy.ITSELF else None
    return AttemptRecord("j", number, at - 200.0, workers, begun, at, ended_by=by)


@pytest.mark.parametrize(
    ("attempts", "until"),
    [
        ((), {}),
        ([attempt(1, "a", at=10.0)], {"a": 15.0}),
        ([attempt(1, "a", at=10.0), attempt(2, "a", at=30.0)], {"a": 50.0}),
        ([attempt(1, "a", at=10.0), attempt(2, "b", at=30.0)], {"a": 15.0, "b": 35.0}),
        ([attempt(n, "a", at=10.0) for n in range(1, 4)], {"a": 90.0}),
        ([attempt(n, "a", at=10.0) for n in range(1, 9)], {"a": 610.0}),
        # Two workers of one attempt are one refusal.
        ([attempt(1, "a", "a", at=10.0)], {"a": 15.0}),
        # The job began on another node meanwhile, so earlier refusals no longer count.
        (
            [
                attempt(1, "a", at=10.0),
                attempt(2, "b", at=500.0, by=EndedBy.ITSELF),
                attempt(3, "a", at=600.0),
            ],
            {"a": 605.0},
        ),
        # The worker was lost before it began, so the node's refusals still count.
        (
            [
                attempt(1, "a", at=10.0),
                attempt(2, "a", at=20.0, by=EndedBy.LOST),
                attempt(3, "a", at=30.0),
            ],
            {"a": 50.0},
        ),
    ],
)
def test_repeated_refusals_bar_node_for_longer(
    attempts: list[AttemptRecord], until: dict[str, float]
) -> None:
    assert {bar.place: bar.until for bar in node_bars(attempts)} == until


def test_loss_count_depends_on_number_of_refusing_nodes() -> None:
    one = [attempt(number, "a", at=10.0) for number in range(1, 20)]
    assert lost_in_a_row(one) == 1
    many = [attempt(number, f"n{number}", at=10.0) for number in range(MOST_LOST)]
    assert lost_in_a_row(many) == MOST_LOST
    lost = [attempt(number, "a", at=10.0, by=EndedBy.LOST) for number in range(3)]
    assert lost_in_a_row(lost) == 0  # 200 s after their start was decided
