"""What is left to spare when every claim of a pass has its places (R18).

Claims are served one after the other, so an early one may have taken a victim that a later one
makes superfluous: its own victim leaves room over. At the end of the pass every victim is looked
at once more, the last first: it stays if those who were to get its room find other room that is
leaving anyway. Whoever cannot stay, but fits on what is free and nobody else wanted, goes on there.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.core.capacity.assignment import Decided
from benchpool_scheduler.core.capacity.free_capacity import Taken
from benchpool_scheduler.core.capacity.placement import find
from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.cluster.preemption_units import Chunk
from benchpool_scheduler.core.jobs.amounts import NOTHING, WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import Work
from benchpool_scheduler.core.model import JobId


def spare(board: Board) -> Iterator[Chunk]:
    """Let victims hold again where the claims fit without them; yield those."""
    for chunk in reversed(board.given[:]):
        if chunk.fresh or chunk.work.job.id in board.decided:
            continue
        if chunk.amounts.gpus > board.room.unclaimed() * WHOLE_GPU or _stopped(board, chunk):
            continue
        claimants = [
            entry
            for entry in board.decided.values()
            if any(chunk.work.job.id in part.after for part in entry.parts)
        ]
        rightful = all(_indifferent(board, entry, chunk.work) for entry in claimants)
        if rightful and _placed_without(board, chunk, claimants):
            yield chunk


def _stopped(board: Board, chunk: Chunk) -> bool:
    """Tell whether this is surplus of a job whose core is going: all of it goes."""
    return not chunk.core and any(c.core and c.work is chunk.work for c in board.given)


def _indifferent(board: Board, entry: Decided, victim: Work) -> bool:
    """Tell whether sparing leaves the claim as rightful as it was (R15).

    What the claimant's own side gives may entitle it to the rest.
    """
    claimant = entry.work
    if claimant.branch.path[0] != victim.branch.path[0]:
        return True
    leaving = [board.works[job] for part in entry.parts for job in part.after]
    return all(work.branch.index == claimant.branch.index for work in leaving)


def _placed_without(board: Board, chunk: Chunk, claimants: list[Decided]) -> bool:
    """Place the claimants anew with the chunk kept; without that, nothing has happened."""
    before = [entry.parts for entry in claimants]
    for entry in claimants:
        _unseat(board, entry)
    board.take_back(chunk)
    for entry, parts in zip(claimants, before, strict=True):
        if not _seat(board, entry, parts, chunk.work.job.id):
            break
    else:
        if not _short_for_benches(board, chunk):
            return True
    for entry in claimants:
        _unseat(board, entry)
    board.let_go(chunk)
    board.give(chunk)
    for entry, parts in zip(claimants, before, strict=True):
        entry.parts = parts
        for part in parts:
            for worker in part.workers:
                board.room.retake(entry.work, worker)
    return False


def _short_for_benches(board: Board, chunk: Chunk) -> bool:
    """Tell whether benches lack GPUs where the chunk is (R3)."""
    nodes = {worker.node for worker in chunk.workers} & board.room.by_name.keys()
    return any(board.room.by_name[name].short_for_benches() > 0 for name in nodes)


def _unseat(board: Board, entry: Decided) -> None:
    for part in entry.parts:
        for worker in part.workers:
            board.room.give_back(entry.work, worker)
    entry.parts = []


def _seat(board: Board, entry: Decided, parts: list[Taken], spared: JobId) -> bool:
    work = entry.work
    if board.ledger.over_limit(work, NOTHING, soon=True) is not None:
        return False
    for part in parts:
        places = find(work, len(part.workers), board.room, soon=bool(part.after))
        if places is None:
            return False
        taken = board.room.take(work, places)
        after = [job for job in (*part.after, *taken.after) if job != spared]
        entry.parts.append(Taken(taken.workers, tuple(dict.fromkeys(after))))
    return True


def go_on_elsewhere(board: Board) -> Iterator[tuple[Work, Taken]]:
    """Yield the jobs that lose all their workers but fit on what nobody else wanted (R18)."""
    lost: dict[JobId, int] = {}
    for chunk in board.given:
        if not chunk.fresh:
            lost[chunk.work.job.id] = lost.get(chunk.work.job.id, 0) + len(chunk.workers)
    for job, workers in lost.items():
        work = board.works[job]
        if job in board.decided or workers < len(work.job.held) or not work.job.checkpoints:
            continue
        wanted = work.need.times(workers)
        if wanted.gpus > board.room.free(work.fit) * WHOLE_GPU and not work.fit.part:
            continue
        if board.ledger.over_limit(work, wanted, soon=True) is not None:
            continue
        places = find(work, workers, board.room, soon=False, anywhere=True)
        if places is not None:
            yield work, Taken(board.room.take(work, places).workers, (job,))
