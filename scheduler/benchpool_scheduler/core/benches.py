"""Room for benches: over-quota work gives way where a node keeps fewer than benches need (R3)."""

from __future__ import annotations

from benchpool_scheduler.core.amounts import NOTHING, WHOLE_GPU, Amounts
from benchpool_scheduler.core.board import Board
from benchpool_scheduler.core.chunks import Chunk, order_of
from benchpool_scheduler.core.givers import Givers
from benchpool_scheduler.core.room import NodeRoom


def give_way_to_benches(board: Board, givers: Givers) -> list[Chunk]:
    """Let over-quota work go where a node has fewer free GPUs than are kept for benches (R3).

    Takes what is there even when it is not enough: every GPU is one bench more.
    """
    given: list[Chunk] = []
    for node in board.keeping:
        gone: list[Chunk] = []
        while node.short_for_benches() > 0:
            chunk = _over_quota_on(node, board, givers, gone)
            if chunk is None:
                break
            board.let_go(chunk)
            gone.append(chunk)
        for chunk in gone[::-1]:
            board.hold_again(chunk)
            if node.short_for_benches() > 0:
                board.let_go(chunk)
                board.give(chunk)
                given.append(chunk)
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
            due = tuple(-board.standing.dominant(i, NOTHING) for i in branch.path)
            order = order_of(chunk, givers.lost(chunk), -len(chunk.workers))
            found.append(((due, -branch.index, order), chunk))
    return min(found, key=lambda entry: entry[0])[1] if found else None
