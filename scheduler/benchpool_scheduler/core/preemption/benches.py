"""Room for benches: what train must give back to them (R3).

Over-quota work gives way where a node keeps fewer free GPUs than benches need. Where an owner waits
for GPUs that were lent, everything that can be paused gives way: over-quota work first, then what
has just started or runs within quota. It took them on that condition.
"""

from __future__ import annotations

from collections.abc import Callable

from benchpool_scheduler.core.capacity.free_capacity import NodeRoom
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.cluster.preemption_units import Chunk, order_of
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU, Amounts
from benchpool_scheduler.core.preemption.candidates import Givers

Choose = Callable[[NodeRoom, Board, Givers, list[Chunk]], Chunk | None]


def give_way_to_benches(board: Board, givers: Givers) -> list[Chunk]:
    """Let work go where a node has fewer free GPUs than are kept for benches (R3).

    Takes what is there even when it is not enough: every GPU is one bench more.
    """
    given: list[Chunk] = []
    lenient = Givers(board.chunks, givers.now_s, protected=True)
    for node in board.keeping:
        given += _clear(board, givers, node, _over_quota_on)
        if node.node.called:
            given += _clear(board, lenient, node, _pausable_on, called=True)
    return given


def _clear(
    board: Board, givers: Givers, node: NodeRoom, choose: Choose, *, called: bool = False
) -> list[Chunk]:
    """Let chunks go until nothing is short, then keep those that were not needed after all."""
    gone: list[list[Chunk]] = []
    while node.short_for_benches(called=called) > 0:
        chunk = choose(node, board, givers, [chunk for chunks in gone for chunk in chunks])
        if chunk is None:
            break
        # With the core of a job goes all that it has.
        chunks = [chunk, *(givers.surplus_of(chunk) if chunk.core else ())]
        gone.append([one for one in chunks if not any(one in others for others in gone)])
        for one in gone[-1]:
            board.let_go(one)
    given: list[Chunk] = []
    stopped: set[int] = set()
    for chunks in gone[::-1]:
        for one in chunks:
            board.hold_again(one)
        whole = chunks[0].work.age in stopped
        if whole or node.short_for_benches(called=called) > 0:
            for one in chunks:
                board.let_go(one)
                board.give(one)
            given += chunks
            stopped.update(one.work.age for one in chunks if one.core)
    return given


def _over_quota_on(node: NodeRoom, board: Board, givers: Givers, gone: list[Chunk]) -> Chunk | None:
    """Return what should go first: of the project that holds most of its due, its worst chunk."""
    one_gpu = Amounts(gpus=WHOLE_GPU)
    found: list[tuple[tuple[object, ...], Chunk]] = []
    for chunk in givers.on_node(node.node.name):
        branch = chunk.work.branch
        if not chunk.amounts.gpus or chunk in gone:
            continue
        if any(board.standing.above_quota(i, one_gpu) for i in branch.path):
            found.append((_order(board, givers, chunk), chunk))
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _pausable_on(node: NodeRoom, board: Board, givers: Givers, gone: list[Chunk]) -> Chunk | None:
    """Return what should go first of all that can be paused, over-quota work before any other."""
    if (over := _over_quota_on(node, board, givers, gone)) is not None:
        return over
    found = [
        (_order(board, givers, chunk), chunk)
        for chunk in givers.on_node(node.node.name)
        if chunk.amounts.gpus and chunk not in gone
    ]
    return min(found, key=lambda entry: entry[0])[1] if found else None


def _order(board: Board, givers: Givers, chunk: Chunk) -> tuple[object, ...]:
    branch = chunk.work.branch
    due = tuple(-board.standing.dominant(i, NOTHING) for i in branch.path)
    return due, -branch.index, order_of(chunk, givers.lost(chunk), -len(chunk.workers))
