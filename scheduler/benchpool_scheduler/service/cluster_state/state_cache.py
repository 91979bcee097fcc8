"""The core's board, kept in step with the ledger: a change of the ledger costs what it changes.

What the loop of events learns it only notes here; the board itself is touched in ``decide``, by
the one thread that passes run in. A job that the core cannot take, or that makes it fail, is set
aside with a sentence and the pool goes on without it.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.core.cluster.cluster_state import Board
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import (
    Job,
    JobId,
    Plan,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    UserUse,
)
from benchpool_scheduler.core.plan import decide_on
from benchpool_scheduler.core.whatif.preview import PreviewOutcome, preview_on
from benchpool_scheduler.service.cluster_state import snapshots
from benchpool_scheduler.service.cluster_state.snapshots import Ground
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.site import Site
from benchpool_scheduler.service.process import interpreter
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

MANY_NODES = 2
"""When more than one in so many nodes has changed, they are not renewed one by one."""

MOST_ASIDE = 10
"""So many jobs are set aside in one pass; more means that the fault is not theirs."""


@dataclass(frozen=True, slots=True)
class Frame:
    """All that a board is made of but its jobs; another frame needs another board.

    Attributes:
        homes: In which project of the core the jobs of each project are.
    """

    ground: Ground
    topology: tuple[str, ...]
    projects: tuple[Project, ...]
    users: tuple[UserUse, ...]
    policy: Policy
    homes: Mapping[str, ProjectName]

    @property
    def slices(self) -> frozenset[str]:
        """Places where the GPUs are slices."""
        return self.ground.inventory.slices

    def sees_jobs_as(self, other: Frame) -> bool:
        """Tell whether the jobs look the same in another frame."""
        return (self.homes, self.slices) == (other.homes, other.slices)


@dataclass(frozen=True, slots=True)
class Look:
    """What a pass decides about, beside the ledger's records.

    Attributes:
        now: Epoch seconds. ``touched``: jobs that have changed since the look before.
    """

    frame: Frame
    now: float
    touched: Mapping[str, None]


@dataclass(frozen=True, slots=True)
class Aside:
    """A job that the core could not take: its state then, and why in a sentence."""

    state: JobState
    text: str


class KeptBoard:
    """The board with the jobs of the ledger.

    Attributes:
        aside: Jobs that are kept off the board, by id.
        rebuilt: How often a board was made from nothing; ``rehoused``: only its nodes.
    """

    def __init__(
        self, ledger: Ledger, site: Site, decide: Callable[[Board, float], Plan] = decide_on
    ) -> None:
        self._ledger = ledger
        self._site = site
        self._decide = decide
        self._touched: dict[str, None] = {}
        self._board: Board | None = None
        self._frame: Frame | None = None
        self._jobs: dict[JobId, Job] = {}
        self._fading: list[tuple[float, str]] = []
        self._fades: dict[str, float] = {}
        self._anew = False
        self.aside: dict[str, Aside] = {}
        self.rebuilt = self.rehoused = 0

    # ------------------------------------------------------------------ on the loop

    def touch(self, jobs: Iterable[str]) -> None:
        """Note that jobs have changed; the next ``decide`` takes them over."""
        self._touched.update(dict.fromkeys(jobs))

    def renew(self) -> None:
        """Have the next look make the board from nothing, and try again what is aside."""
        self._anew = True

    def look(self) -> Look:
        """Return what the next ``decide`` must know; with the ledger's turn."""
        site = self._site
        if self._anew:
            self._anew, self._frame = False, None
            self.aside.clear()
        homes = snapshots.homes(site, self._ledger.census.projects())
        touched, self._touched = self._touched, {}
        frame = Frame(
            ground=snapshots.ground(self._ledger, site, self._blocked(self.aside)),
            topology=snapshots.levels(site),
            projects=snapshots.projects(site, homes.values()),
            users=self._site.past.users,
            policy=site.configuration.policy,
            homes=homes,
        )
        return Look(frame, site.clock.now(), touched)

    def next_fading(self) -> float | None:
        """Return when time alone next makes another job of one to the core (R19)."""
        return self._fading[0][0] if self._fading else None

    # ------------------------------------------------------------------ in the thread of passes

    def decide(self, look: Look) -> Plan:
        """Take over what has changed and decide. The caller holds the ledger's turn.

        Errors: whatever the core raises when no single job is the cause.
        """
        for _ in range(MOST_ASIDE):
            try:
                return self._decide(self._followed(look), look.now)
            except Exception as error:
                self._board = self._frame = None
                culprit = self._culprit(look)
                if culprit is None:
                    raise
                self._set_aside(culprit, error)
                look = _without(look, self._blocked([culprit]))
        raise RuntimeError(f"the core failed on more than {MOST_ASIDE} jobs in one pass")

    def _followed(self, look: Look) -> Board:
        """Return the board as the ledger is now."""
        frame, changed = look.frame, [*look.touched, *self._faded(look.now)]
        if self._board is not None and self._frame == frame:
            for name in changed:
                self._put(self._board, name, look)
            return self._board
        if self._board is not None and self._renewed(self._board, frame):
            self._frame = frame
            for name in changed:
                self._put(self._board, name, look)
            return self._board
        if self._frame is None or not self._frame.sees_jobs_as(frame):
            changed = [*self._ledger.catalogue.live, *changed]
            self._jobs.clear()
        self._convert(changed, look)
        self._board = self._made(frame, self._jobs.values())
        self._frame = frame
        self.rebuilt += 1
        interpreter.settle(len(self._jobs))
        return self._board

    def _renewed(self, board: Board, frame: Frame) -> bool:
        """Let the board's nodes be those of another frame, where that is all that differs."""
        if self._frame is None or replace(self._frame, ground=frame.ground) != frame:
            return False
        if not self._frame.sees_jobs_as(frame):
            return False
        nodes = snapshots.nodes(frame.ground)
        if [node.name for node in nodes] == [node.name for node in board.nodes]:
            changed = [now for now, was in zip(nodes, board.nodes, strict=True) if now != was]
            if len(changed) <= max(1, len(nodes) // MANY_NODES) and board.renew(changed):
                return True
        board.rehouse(nodes)
        self.rehoused += 1
        return True

    def _convert(self, changed: Iterable[str], look: Look) -> None:
        for name in changed:
            self._jobs.pop(JobId(name), None)
            self._jobs.pop(snapshots.leaving_id(name), None)
            for job in self._seen(name, look):
                self._jobs[job.id] = job

    def _put(self, board: Board, name: str, look: Look) -> None:
        """Let the board know of one job what it does not know yet."""
        jobs = {job.id: job for job in self._seen(name, look)}
        for job_id in (JobId(name), snapshots.leaving_id(name)):
            job, before = jobs.get(job_id), self._jobs.get(job_id)
            if job == before:
                continue
            if job is None:
                del self._jobs[job_id]
                board.drop(job_id)
            else:
                self._jobs[job_id] = job
                board.put(job, self._age(job_id))

    def _seen(self, name: str, look: Look) -> tuple[Job, ...]:
        record = self._ledger.job(name)
        if record is None or self._stays_aside(record):
            return ()
        if record.project not in look.frame.homes:
            # It came while this pass was on its way; the next one looks at it.
            return ()
        slices = look.frame.slices
        found = snapshots.jobs_of(self._ledger, record, look.frame.homes, look.now, slices)
        for job in found[:1]:
            if job.preemptions_last_hour or job.barred:
                self._watch_fading(record, look.now)
        return found

    def _made(self, frame: Frame, jobs: Iterable[Job]) -> Board:
        nodes = snapshots.nodes(frame.ground)
        board = Board(nodes, frame.projects, frame.policy, frame.users, frame.topology)
        for job in jobs:
            board.put(job, self._age(job.id))
        return board

    def _age(self, job: JobId) -> int:
        """Return the place of a job among all; its workers that leave come right after it."""
        number = self._ledger.catalogue.numbers.get(job)
        if number is not None:
            return 2 * number
        return 2 * self._ledger.catalogue.numbers[snapshots.job_of_leaving(job)] + 1

    def preview(self, look: Look, job: Job) -> PreviewOutcome:
        """Say what would come of a job that was not accepted yet: as ``decide``, in the thread.

        Errors: whatever the core raises.
        """
        try:
            return preview_on(self._followed(look), job, look.now)
        except Exception:
            self._board = self._frame = None
            raise

    async def follow(self) -> None:
        """Take over what has come about since the newest pass saw the pool, e.g. its own starts.

        The caller holds the ledger's turn. What the core cannot take is left to the next pass,
        which sets it aside.
        """
        look = self.look()
        try:
            await asyncio.to_thread(self._followed, look)
        except Exception:
            log.exception("the board could not follow; the next pass makes it anew")
            self._board = self._frame = None

    async def snapshot(self, now: float) -> Snapshot | None:
        """Return the pool as it was last followed; None where it was not.

        The caller holds the ledger's turn: then no pass is under way.
        """
        frame = self._frame
        if self._board is None or frame is None:
            return None
        jobs = await asyncio.to_thread(sorted, self._jobs.values(), key=lambda it: self._age(it.id))
        return Snapshot(
            nodes=self._board.nodes,
            projects=frame.projects,
            jobs=tuple(jobs),
            policy=frame.policy,
            users=frame.users,
            topology=frame.topology,
            now_s=now,
        )

    # ------------------------------------------------------------------ what time alone changes

    def _watch_fading(self, record: JobRecord, now: float) -> None:
        name = record.id
        ends = (end for end in snapshots.fadings(self._ledger, record) if end > now)
        end = min(ends, default=None)
        if end is not None and self._fades.get(name) != end:
            self._fades[name] = end
            heapq.heappush(self._fading, (end, name))

    def _faded(self, now: float) -> list[str]:
        found: dict[str, None] = {}
        while self._fading and self._fading[0][0] <= now:
            name = heapq.heappop(self._fading)[1]
            self._fades.pop(name, None)
            found[name] = None
        return list(found)

    # ------------------------------------------------------------------ setting aside

    def _stays_aside(self, record: JobRecord) -> bool:
        """Tell whether a job is kept off the board; one that got on in its life is tried again."""
        aside = self.aside.get(record.id)
        if aside is None:
            return False
        if record.live and aside.state is record.state:
            return True
        del self.aside[record.id]
        return False

    def _set_aside(self, name: str, error: Exception) -> None:
        record = self._ledger.job(name)
        if record is None:
            return
        log.error("job %s is set aside: the core cannot take it", name, exc_info=error)
        text = (
            f"The pool cannot decide about job {name[:8]} ({record.name}) and goes on without it: "
            f"{str(error).rstrip('.') or type(error).__name__}."
        )
        self.aside[name] = Aside(record.state, text)
        self._jobs.pop(JobId(name), None)
        self._jobs.pop(snapshots.leaving_id(name), None)

    def _blocked(self, jobs: Iterable[str]) -> frozenset[str]:
        """Return the GPUs that these jobs hold: nobody else may be given them (R1)."""
        entries = (self._ledger.census.entry(job) for job in jobs)
        return frozenset(gpu for entry in entries if entry is not None for gpu in entry.gpus)

    def _culprit(self, look: Look) -> str | None:
        """Return the job without which the core does not fail, None when there is none.

        Jobs that have not changed are beyond suspicion while the core takes them alone; among the
        others the first one is found after which it fails, by halving.
        """
        names = [name for name in list(self._ledger.catalogue.live) if name not in self.aside]
        suspects = [name for name in names if name in look.touched]
        innocent = [name for name in names if name not in look.touched]
        if not suspects or self._fails(look, innocent):
            innocent, suspects = [], names
            if self._fails(look, []):
                return None
        if not self._fails(look, [*innocent, *suspects]):
            return None
        good, bad = 0, len(suspects)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._fails(look, [*innocent, *suspects[:middle]]):
                bad = middle
            else:
                good = middle
        return suspects[good]

    def _fails(self, look: Look, names: Sequence[str]) -> bool:
        try:
            jobs = [job for name in names for job in self._seen(name, look)]
            self._decide(self._made(look.frame, jobs), look.now)
        except Exception:
            return True
        return False


def _without(look: Look, gpus: frozenset[str]) -> Look:
    """Return a look at a pool without these GPUs."""
    ground = replace(look.frame.ground, blocked=look.frame.ground.blocked | gpus)
    return replace(look, frame=replace(look.frame, ground=ground))
