"""Scheduling order (R11): the next job between projects, and inside a project.

Siblings are compared at each level of the tree, parents before their children, by the job that each
would start next. A start changes what its project holds, so that the order changes within a pass.
The keys on its path are recomputed and all others stay.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Set

from benchpool_scheduler.core.fairness.queue_usage import QueueUsage
from benchpool_scheduler.core.jobs.equivalence import EquivalenceClass, Signature
from benchpool_scheduler.core.model import JobId

TurnKey = tuple[bool, bool, int, float, int, float, int]
Tier = tuple[int, bool, bool]

PastUse = Mapping[tuple[int, str], float]
"""Decayed past use by project age and user (R7)."""


class Cursor:
    """Position of the first job of a class that was not served yet in this pass."""

    __slots__ = ("equal_jobs", "info", "position")

    def __init__(self, equal_jobs: EquivalenceClass) -> None:
        self.equal_jobs = equal_jobs
        self.position = 0
        self.info = equal_jobs.at(0)

    @property
    def workers(self) -> int:
        """Return how many workers the job has already: more than 0 for a job that could grow."""
        return self.equal_jobs.workers

    def next(self) -> bool:
        """Advance to the next job of the class. Return whether there is one."""
        return self.go_to(self.position + 1)

    def go_to(self, position: int | None) -> bool:
        """Advance to a position, or to the end if None. Return whether a job is there."""
        self.position = len(self.equal_jobs.ages) if position is None else position
        if self.position == len(self.equal_jobs.ages):
            return False
        self.info = self.equal_jobs.at(self.position)
        return True

    def left(self) -> list[JobId]:
        """Return the jobs that still wait."""
        return self.equal_jobs.ids[self.position :]


_Entry = tuple[int, int, int, Cursor]
"""Workers that the job has, its age, a running number and the cursor. A job may be queued twice."""


class SchedulingQueue:
    """Waiting jobs of one pass, in the order of R11.

    Args:
        hopeless: Cheap check whether a cursor cannot start at present. Such a cursor is skipped.
    """

    def __init__(
        self, usage: QueueUsage, past: PastUse, hopeless: Callable[[Cursor], bool]
    ) -> None:
        self.usage = usage
        self.tree = usage.tree
        self.past = past
        self.hopeless = hopeless
        self.failed: set[Signature] = set()
        self.queues: dict[int, ProjectQueue] = {}
        self._ranks: dict[int, _SiblingTurns] = {}

    def put(self, equal_jobs: EquivalenceClass) -> None:
        """Add a class of jobs."""
        cursor = Cursor(equal_jobs)
        self.put_back(cursor)

    def put_back(self, cursor: Cursor) -> None:
        """Add the rest of a class again."""
        branch = cursor.info.branch
        queue = self.queues.get(branch.index)
        if queue is None:
            queue = ProjectQueue(self.usage, self.past, self.hopeless, self.failed)
            self.queues[branch.index] = queue
        queue.put(cursor)
        self.changed(branch.path)

    def changed(self, path: tuple[int, ...]) -> None:
        """Mark the projects on a path whose holdings or waiting jobs have changed."""
        above = -1
        for index in path:
            siblings = self._ranks.get(above)
            if siblings is None:
                siblings = self._ranks[above] = _SiblingTurns()
            siblings.stale.add(index)
            above = index

    def take(self) -> Cursor | None:
        """Remove and return the next cursor, or None if the queue is empty."""
        best = self._best(-1)
        if best is None:
            return None
        cursor = best[1]
        branch = cursor.info.branch
        self.queues[branch.index].pop(cursor)
        self.changed(branch.path)
        return cursor

    def fail(self, cursor: Cursor) -> None:
        """Record that the job did not start. Its signature is skipped until capacity is freed."""
        self.failed.add(cursor.equal_jobs.signature)
        self.queues[cursor.info.branch.index].blocked.append(cursor)

    def retry(self) -> None:
        """Queue all failed and skipped jobs again, since capacity was freed (R9)."""
        self.failed.clear()
        for index, queue in self.queues.items():
            if queue.blocked or queue.passed_over:
                queue.unblock()
                queue.reconsider()
                self.changed(self.tree.branches[index].path)

    def reconsider(self) -> None:
        """Queue the jobs again that were skipped as hopeless, since holdings have changed."""
        for index, queue in self.queues.items():
            if queue.passed_over:
                queue.reconsider()
                self.changed(self.tree.branches[index].path)

    def waiting(self) -> Iterator[Cursor]:
        """Yield the jobs that still wait at the end of the pass."""
        for queue in self.queues.values():
            yield from queue.blocked
            yield from queue.passed_over

    def _best(self, above: int) -> tuple[TurnKey, Cursor] | None:
        """Return the next child of a project, or the next top project for -1."""
        siblings = self._ranks.get(above)
        if siblings is None:
            return None
        while siblings.stale:
            index = siblings.stale.pop()
            cursor = self._representative(index)
            siblings.set(index, None if cursor is None else (self._turn(index, cursor), cursor))
        return siblings.first()

    def _representative(self, index: int) -> Cursor | None:
        if self.tree.branches[index].children:
            best = self._best(index)
            return None if best is None else best[1]
        queue = self.queues.get(index)
        return None if queue is None else queue.head()

    def _turn(self, index: int, cursor: Cursor) -> TurnKey:
        """Return the sort key of a sibling. The smallest key goes first (R11)."""
        info = cursor.info
        branch, usage = self.tree.branches[index], self.usage
        extra = info.request if cursor.workers else info.min_gang
        lead = 0 if extra[0] else next((r for r in (1, 2) if extra[r]), 0)
        held = usage.ledger.held[index][lead]
        return (
            held >= usage.shares[index][lead],
            not usage.within_quota(index, extra),
            -branch.priority,
            usage.dominant(index, extra),
            held + extra[lead],
            branch.used_gpu_s,
            index,
        )


class _SiblingTurns:
    """Children of one project that have a cursor, sorted by turn.

    Outdated entries of the heap are dropped when they reach the top.
    """

    __slots__ = ("heap", "stale", "turns")

    def __init__(self) -> None:
        self.stale: set[int] = set()
        self.turns: dict[int, tuple[TurnKey, Cursor] | None] = {}
        self.heap: list[tuple[TurnKey, int]] = []

    def set(self, index: int, entry: tuple[TurnKey, Cursor] | None) -> None:
        self.turns[index] = entry
        if entry is not None:
            heapq.heappush(self.heap, (entry[0], index))

    def first(self) -> tuple[TurnKey, Cursor] | None:
        while self.heap:
            turn, index = self.heap[0]
            entry = self.turns[index]
            if entry is not None and entry[0] == turn:
                return entry
            heapq.heappop(self.heap)
        return None


class ProjectQueue:
    """Cursors of one project, sorted by priority, then by user (R7), then by age.

    Jobs that wait for their first worker go before jobs that could grow.

    Args:
        failed: Signatures that have failed, updated by the caller.

    Attributes:
        blocked: Cursors that failed to start, or whose signature had failed.
        passed_over: Cursors that were skipped as hopeless.
    """

    def __init__(
        self,
        usage: QueueUsage,
        past: PastUse,
        hopeless: Callable[[Cursor], bool],
        failed: Set[Signature],
    ) -> None:
        self.usage = usage
        self.past = past
        self.hopeless = hopeless
        self.failed = failed
        self.blocked: list[Cursor] = []
        self.passed_over: list[Cursor] = []
        self._tiers: dict[Tier, dict[str, list[_Entry]]] = {}
        self._put = 0

    def put(self, cursor: Cursor) -> None:
        """Add a cursor."""
        users = self._tiers.setdefault(cursor.equal_jobs.tier, {})
        self._put += 1
        entry = (cursor.workers, cursor.info.age, self._put, cursor)
        heapq.heappush(users.setdefault(cursor.equal_jobs.user, []), entry)

    def unblock(self) -> None:
        """Queue the blocked cursors again."""
        blocked, self.blocked = self.blocked, []
        for cursor in blocked:
            self.put(cursor)

    def reconsider(self) -> None:
        """Queue the cursors again that were skipped as hopeless."""
        passed_over, self.passed_over = self.passed_over, []
        for cursor in passed_over:
            self.put(cursor)

    def head(self) -> Cursor | None:
        """Return the next cursor, or None."""
        while self._tiers:
            tier = min(self._tiers)
            users = self._tiers[tier]
            for user in list(users):
                self._pass_over(users, user)
            if users:
                user = min(users, key=lambda user: self._turn_of(users, user))
                return users[user][0][-1]
            del self._tiers[tier]
        return None

    def pop(self, cursor: Cursor) -> None:
        """Remove the head."""
        users = self._tiers[cursor.equal_jobs.tier]
        heapq.heappop(users[cursor.equal_jobs.user])
        if not users[cursor.equal_jobs.user]:
            del users[cursor.equal_jobs.user]

    def _pass_over(self, users: dict[str, list[_Entry]], user: str) -> None:
        """Skip the leading cursors that cannot start."""
        entries = users[user]
        while entries:
            cursor = entries[0][-1]
            if cursor.equal_jobs.signature in self.failed:
                self.blocked.append(cursor)
            elif self.hopeless(cursor):
                self.passed_over.append(cursor)
            else:
                return
            heapq.heappop(entries)
        del users[user]

    def _turn_of(
        self, users: dict[str, list[_Entry]], user: str
    ) -> tuple[bool, int, float, int, int]:
        workers, age, _, cursor = users[user][0]
        turn = (cursor.info.branch.index, user)
        held = self.usage.ledger.by_user.get(turn, 0)
        return cursor.info.job.behind, held, self.past.get(turn, 0.0), workers, age
