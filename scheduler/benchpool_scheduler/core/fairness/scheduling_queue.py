"""Whose turn it is (R11): the next job between projects, and inside one.

Siblings are compared at each level of the tree, departments before their projects, always with
the job that each would start next. A start changes what its project holds, so the order moves
within a pass: the keys on its path are made anew, all others stand.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Set

from benchpool_scheduler.core.fairness.queue_usage import Standing
from benchpool_scheduler.core.jobs.equivalence import Line, Shape
from benchpool_scheduler.core.model import JobId

Turn = tuple[bool, bool, int, float, int, float, int]
Tier = tuple[int, bool, bool]

PastUse = Mapping[tuple[int, str], float]
"""Decayed past use by project age and user (R7)."""


class Waiter:
    """The first job of a line that was not served yet in this pass."""

    __slots__ = ("line", "position", "work")

    def __init__(self, line: Line) -> None:
        self.line = line
        self.position = 0
        self.work = line.at(0)

    @property
    def workers(self) -> int:
        """Return how many workers it already has; more than none when it could grow."""
        return self.line.workers

    def next(self) -> bool:
        """Go on to the next job of the line; tell whether there is one."""
        return self.go_to(self.position + 1)

    def go_to(self, position: int | None) -> bool:
        """Go on to a position of the line, None for its end; tell whether a job is there."""
        self.position = len(self.line.ages) if position is None else position
        if self.position == len(self.line.ages):
            return False
        self.work = self.line.at(self.position)
        return True

    def left(self) -> list[JobId]:
        """Return the jobs that still wait."""
        return self.line.ids[self.position :]


class Turns:
    """The waiting jobs of one pass, in the order of R11.

    Args:
        hopeless: Tells of a waiter that it cannot start as things are, cheaply; it is passed over.
    """

    def __init__(
        self, standing: Standing, past: PastUse, hopeless: Callable[[Waiter], bool]
    ) -> None:
        self.standing = standing
        self.tree = standing.tree
        self.past = past
        self.hopeless = hopeless
        self.failed: set[Shape] = set()
        self.queues: dict[int, ProjectQueue] = {}
        self._ranks: dict[int, _Siblings] = {}

    def put(self, line: Line) -> None:
        """Let a line wait."""
        waiter = Waiter(line)
        self.put_back(waiter)

    def put_back(self, waiter: Waiter) -> None:
        """Let the rest of a line wait (again)."""
        branch = waiter.work.branch
        queue = self.queues.get(branch.index)
        if queue is None:
            queue = ProjectQueue(self.standing, self.past, self.hopeless, self.failed)
            self.queues[branch.index] = queue
        queue.put(waiter)
        self.changed(branch.path)

    def changed(self, path: tuple[int, ...]) -> None:
        """The holdings or the waiting jobs of the projects on a path have changed."""
        above = -1
        for index in path:
            siblings = self._ranks.get(above)
            if siblings is None:
                siblings = self._ranks[above] = _Siblings()
            siblings.stale.add(index)
            above = index

    def take(self) -> Waiter | None:
        """Remove and return the next waiter; None when nobody is left."""
        best = self._best(-1)
        if best is None:
            return None
        waiter = best[1]
        branch = waiter.work.branch
        self.queues[branch.index].pop(waiter)
        self.changed(branch.path)
        return waiter

    def fail(self, waiter: Waiter) -> None:
        """The job did not start, so nobody of its shape does, until somebody gives room."""
        self.failed.add(waiter.line.shape)
        self.queues[waiter.work.branch.index].blocked.append(waiter)

    def retry(self) -> None:
        """Somebody gave room: those who failed have another turn (R9)."""
        self.failed.clear()
        for index, queue in self.queues.items():
            if queue.blocked or queue.passed_over:
                queue.unblock()
                queue.reconsider()
                self.changed(self.tree.branches[index].path)

    def reconsider(self) -> None:
        """Holdings have moved: those who were passed over as hopeless are looked at again."""
        for index, queue in self.queues.items():
            if queue.passed_over:
                queue.reconsider()
                self.changed(self.tree.branches[index].path)

    def waiting(self) -> Iterator[Waiter]:
        """Yield who is still waiting when nobody has a turn left."""
        for queue in self.queues.values():
            yield from queue.blocked
            yield from queue.passed_over

    def _best(self, above: int) -> tuple[Turn, Waiter] | None:
        """Return the sibling below a project (-1: at the top) whose turn it is."""
        siblings = self._ranks.get(above)
        if siblings is None:
            return None
        while siblings.stale:
            index = siblings.stale.pop()
            waiter = self._representative(index)
            siblings.set(index, None if waiter is None else (self._turn(index, waiter), waiter))
        return siblings.first()

    def _representative(self, index: int) -> Waiter | None:
        if self.tree.branches[index].children:
            best = self._best(index)
            return None if best is None else best[1]
        queue = self.queues.get(index)
        return None if queue is None else queue.head()

    def _turn(self, index: int, waiter: Waiter) -> Turn:
        """Return what siblings are compared by; the smaller goes first (R11)."""
        work = waiter.work
        branch, standing = self.tree.branches[index], self.standing
        extra = work.need if waiter.workers else work.core
        lead = 0 if extra[0] else next((r for r in (1, 2) if extra[r]), 0)
        held = standing.ledger.held[index][lead]
        return (
            held >= standing.shares[index][lead],
            not standing.within_quota(index, extra),
            -branch.priority,
            standing.dominant(index, extra),
            held + extra[lead],
            branch.used_gpu_s,
            index,
        )


class _Siblings:
    """The children of one project that have a waiter, the one whose turn it is first.

    A heap whose outdated entries are thrown away when they come up.
    """

    __slots__ = ("heap", "stale", "turns")

    def __init__(self) -> None:
        self.stale: set[int] = set()
        self.turns: dict[int, tuple[Turn, Waiter] | None] = {}
        self.heap: list[tuple[Turn, int]] = []

    def set(self, index: int, entry: tuple[Turn, Waiter] | None) -> None:
        self.turns[index] = entry
        if entry is not None:
            heapq.heappush(self.heap, (entry[0], index))

    def first(self) -> tuple[Turn, Waiter] | None:
        while self.heap:
            turn, index = self.heap[0]
            entry = self.turns[index]
            if entry is not None and entry[0] == turn:
                return entry
            heapq.heappop(self.heap)
        return None


class ProjectQueue:
    """The waiters of one project: priority, then whose turn it is (R7), then age.

    Jobs that wait for their first worker go before those that could grow.

    Args:
        failed: The shapes that have failed, as they are at any moment.

    Attributes:
        blocked: Waiters that had their turn in vain, or none because their shape had failed.
        passed_over: Waiters that were hopeless when their turn would have come.
    """

    def __init__(
        self,
        standing: Standing,
        past: PastUse,
        hopeless: Callable[[Waiter], bool],
        failed: Set[Shape],
    ) -> None:
        self.standing = standing
        self.past = past
        self.hopeless = hopeless
        self.failed = failed
        self.blocked: list[Waiter] = []
        self.passed_over: list[Waiter] = []
        self._tiers: dict[Tier, dict[str, list[tuple[int, int, Waiter]]]] = {}

    def put(self, waiter: Waiter) -> None:
        """Add a waiter."""
        users = self._tiers.setdefault(waiter.line.tier, {})
        entry = (waiter.workers, waiter.work.age, waiter)
        heapq.heappush(users.setdefault(waiter.line.user, []), entry)

    def unblock(self) -> None:
        """Let the blocked wait again."""
        blocked, self.blocked = self.blocked, []
        for waiter in blocked:
            self.put(waiter)

    def reconsider(self) -> None:
        """Look at those again who were hopeless."""
        passed_over, self.passed_over = self.passed_over, []
        for waiter in passed_over:
            self.put(waiter)

    def head(self) -> Waiter | None:
        """Return the next waiter, or None."""
        while self._tiers:
            tier = min(self._tiers)
            users = self._tiers[tier]
            for user in list(users):
                self._pass_over(users, user)
            if users:
                user = min(users, key=lambda user: self._turn_of(users, user))
                return users[user][0][2]
            del self._tiers[tier]
        return None

    def pop(self, waiter: Waiter) -> None:
        """Remove the head."""
        users = self._tiers[waiter.line.tier]
        heapq.heappop(users[waiter.line.user])
        if not users[waiter.line.user]:
            del users[waiter.line.user]

    def _pass_over(self, users: dict[str, list[tuple[int, int, Waiter]]], user: str) -> None:
        """Take those from the front whose turn would be in vain."""
        entries = users[user]
        while entries:
            waiter = entries[0][2]
            if waiter.line.shape in self.failed:
                self.blocked.append(waiter)
            elif self.hopeless(waiter):
                self.passed_over.append(waiter)
            else:
                return
            heapq.heappop(entries)
        del users[user]

    def _turn_of(
        self, users: dict[str, list[tuple[int, int, Waiter]]], user: str
    ) -> tuple[int, float, int, int]:
        workers, age, waiter = users[user][0]
        turn = (waiter.work.branch.index, user)
        held = self.standing.ledger.by_user.get(turn, 0)
        return held, self.past.get(turn, 0.0), workers, age
