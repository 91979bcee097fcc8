"""The core's ``ClusterState``, updated from the ledger with only the jobs that changed.

The event loop only records which jobs changed. The state itself changes in ``decide``, in the one
thread of the passes. A job that the core rejects, or that makes it fail, is quarantined with an
explanation. The pool continues without it.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.core.model import (
    JobFacts,
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
from benchpool_scheduler.service.cluster_state import node_inputs, snapshots
from benchpool_scheduler.service.cluster_state.node_inputs import NodeInputs
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.ledger.monthly_hours import MonthlyHours
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process import interpreter
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

MANY_NODES = 2
"""Nodes are replaced all at once if more than one in ``MANY_NODES`` has changed."""

MOST_QUARANTINED = 10
"""Maximum number of jobs quarantined in one pass; with more, the jobs are not the cause."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """All inputs of a cluster state except its jobs; another spec needs another state.

    Attributes:
        homes: The core's project for the jobs of each project.
        hours: Users and projects past a budget, which affect the facts of jobs.
    """

    node_inputs: NodeInputs
    topology: tuple[str, ...]
    projects: tuple[Project, ...]
    users: tuple[UserUse, ...]
    policy: Policy
    homes: Mapping[str, ProjectName]
    hours: MonthlyHours = field(default_factory=MonthlyHours)

    @property
    def slices(self) -> frozenset[str]:
        """Places where the GPUs are slices."""
        return self.node_inputs.inventory.slices

    def sees_jobs_as(self, other: ClusterSpec) -> bool:
        """Return whether jobs have the same facts under another spec."""
        return (self.homes, self.slices, self.node_inputs.records, self.hours) == (
            other.homes,
            other.slices,
            other.node_inputs.records,
            other.hours,
        )


@dataclass(frozen=True, slots=True)
class PassInput:
    """Input of a pass, beside the ledger's records.

    Attributes:
        seen: The observations from which ``spec`` was built.
        now: Epoch seconds. ``touched``: jobs that have changed since the previous pass.
    """

    spec: ClusterSpec
    seen: Observations
    now: float
    touched: Mapping[str, None]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A job that the core rejected: its state at that time, and the cause in a sentence."""

    state: JobState
    text: str


class StateCache:
    """The cluster state with the jobs of the ledger.

    Attributes:
        quarantined: Jobs that are kept out of the state, by ID.
        decider: The core's decision function.
        rebuilt: How often the whole state was rebuilt. ``rehoused``: only its nodes.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        decide: Callable[[ClusterState, float], Plan] = decide_on,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self.decider = decide
        self._touched: dict[str, None] = {}
        self._state: ClusterState | None = None
        self._spec: ClusterSpec | None = None
        self._jobs: dict[JobId, JobFacts] = {}
        self._expiring: list[tuple[float, str]] = []
        self._expiry_of: dict[str, float] = {}
        self._stale = False
        self.quarantined: dict[str, Quarantined] = {}
        self.rebuilt = self.rehoused = 0

    # ------------------------------------------------------------------ on the loop

    def touch(self, jobs: Iterable[str]) -> None:
        """Record that jobs have changed. The next ``decide`` applies the changes."""
        self._touched.update(dict.fromkeys(jobs))

    def renew(self) -> None:
        """Make the next pass rebuild the state and retry the quarantined jobs."""
        self._stale = True

    def take_input(self) -> PassInput:
        """Take the changes since the previous pass. The caller holds the ledger's lock."""
        seen = self._observed.now
        if self._stale:
            self._stale, self._spec = False, None
            self.quarantined.clear()
        homes = snapshots.homes(seen, self._ledger.counters.projects())
        touched, self._touched = self._touched, {}
        spec = ClusterSpec(
            node_inputs=node_inputs.node_inputs(
                self._ledger, seen, self._blocked(self.quarantined)
            ),
            topology=snapshots.levels(seen),
            projects=snapshots.projects(seen, homes.values()),
            users=seen.usage.users,
            policy=seen.configuration.policy,
            homes=homes,
            hours=seen.hours,
        )
        return PassInput(spec, seen, self._observed.settings.clock.now(), touched)

    def next_expiry(self) -> float | None:
        """Return when a job next changes for the core by time alone: a protection ends (R19)."""
        return self._expiring[0][0] if self._expiring else None

    # ------------------------------------------------------------------ in the pass thread

    def decide(self, given: PassInput) -> Plan:
        """Apply the changes and decide. The caller holds the ledger's lock.

        Errors: any exception of the core that no single job causes.
        """
        for _ in range(MOST_QUARANTINED):
            try:
                return self.decider(self._followed(given), given.now)
            except Exception as error:
                self._state = self._spec = None
                culprit = self._culprit(given)
                if culprit is None:
                    raise
                self._quarantine(culprit, error)
                given = _without(given, self._blocked([culprit]))
        raise RuntimeError(f"the core failed on more than {MOST_QUARANTINED} jobs in one pass")

    def _followed(self, given: PassInput) -> ClusterState:
        """Return the state after applying the ledger's changes."""
        spec, changed = given.spec, [*given.touched, *self._expired(given.now)]
        if self._state is not None and self._spec == spec:
            for name in changed:
                self._put(self._state, name, given)
            return self._state
        if self._state is not None and self._renewed(self._state, spec):
            self._spec = spec
            for name in changed:
                self._put(self._state, name, given)
            return self._state
        if self._spec is None or not self._spec.sees_jobs_as(spec):
            changed = [*self._ledger.job_index.live, *changed]
            self._jobs.clear()
        self._convert(changed, given)
        self._state = self._made(spec, self._jobs.values())
        self._spec = spec
        self.rebuilt += 1
        interpreter.settle(len(self._jobs))
        return self._state

    def _renewed(self, state: ClusterState, spec: ClusterSpec) -> bool:
        """Return True after replacing the nodes, if the new spec differs only in them."""
        if self._spec is None or replace(self._spec, node_inputs=spec.node_inputs) != spec:
            return False
        if not self._spec.sees_jobs_as(spec):
            return False
        nodes = node_inputs.nodes(spec.node_inputs)
        if [node.name for node in nodes] == [node.name for node in state.nodes]:
            changed = [now for now, was in zip(nodes, state.nodes, strict=True) if now != was]
            if len(changed) <= max(1, len(nodes) // MANY_NODES) and state.renew(changed):
                return True
        state.rehouse(nodes)
        self.rehoused += 1
        return True

    def _convert(self, changed: Iterable[str], given: PassInput) -> None:
        for name in changed:
            self._jobs.pop(JobId(name), None)
            self._jobs.pop(snapshots.leaving_id(name), None)
            for job in self._seen(name, given):
                self._jobs[job.id] = job

    def _put(self, state: ClusterState, name: str, given: PassInput) -> None:
        """Apply the changes of one job to the state."""
        jobs = {job.id: job for job in self._seen(name, given)}
        for job_id in (JobId(name), snapshots.leaving_id(name)):
            job, before = jobs.get(job_id), self._jobs.get(job_id)
            if job == before:
                continue
            if job is None:
                del self._jobs[job_id]
                state.drop(job_id)
            else:
                self._jobs[job_id] = job
                state.put(job, self._age(job_id))

    def _seen(self, name: str, given: PassInput) -> tuple[JobFacts, ...]:
        record = self._ledger.job(name)
        if record is None or self._stays_quarantined(record):
            return ()
        if name in given.seen.safe_mode.held_jobs and record.state not in HOLDS_GPUS:
            return ()  # it runs already, without a record; an adopted job is known
        if record.project not in given.spec.homes:
            # It was accepted during this pass; the next pass includes it.
            return ()
        found = snapshots.jobs_of(self._ledger, record, given.spec.homes, given.now, given.seen)
        for job in found[:1]:
            if job.preemptions_last_day or job.barred or job.only is not None or given.seen.nodes:
                self._watch_expiry(record, given)
        return found

    def _made(self, spec: ClusterSpec, jobs: Iterable[JobFacts]) -> ClusterState:
        nodes = node_inputs.nodes(spec.node_inputs)
        state = ClusterState(nodes, spec.projects, spec.policy, spec.users, spec.topology)
        for job in jobs:
            state.put(job, self._age(job.id))
        return state

    def _age(self, job: JobId) -> int:
        """Return the rank of a job among all. Its leaving workers come directly after it."""
        return snapshots.rank_of(self._ledger, job)

    def preview(self, given: PassInput, job: JobFacts) -> PreviewOutcome:
        """Return the outcome for a job that was not accepted yet, in the thread like ``decide``.

        Errors: any exception of the core.
        """
        try:
            return preview_on(self._followed(given), job, given.now)
        except Exception:
            self._state = self._spec = None
            raise

    async def follow(self) -> None:
        """Apply the changes since the last pass saw the pool, including that pass's own starts.

        The caller holds the ledger's lock. A job that the core rejects is left to the next pass,
        which quarantines it.
        """
        given = self.take_input()
        try:
            await asyncio.to_thread(self._followed, given)
        except Exception:
            log.exception("the cluster state could not be updated; the next pass rebuilds it")
            self._state = self._spec = None

    async def snapshot(self, now: float) -> Snapshot | None:
        """Return the pool as of the last update, or None before the first one.

        The caller holds the ledger's lock, so no pass is running.
        """
        if (facts := self.facts(now)) is None:
            return None
        jobs = await asyncio.to_thread(snapshots.by_rank, self._ledger, facts.jobs)
        return replace(facts, jobs=jobs)

    def facts(self, now: float) -> Snapshot | None:
        """Return the pool as ``snapshot`` does, with its jobs in no order."""
        if self._state is None or (spec := self._spec) is None:
            return None
        jobs = tuple(self._jobs.values())
        return Snapshot(
            self._state.nodes, spec.projects, jobs, spec.policy, spec.users, spec.topology, now
        )

    # ------------------------------------------------------------------ changes by time alone

    def _watch_expiry(self, record: JobRecord, given: PassInput) -> None:
        name = record.id
        found = snapshots.expiries(self._ledger, record, given.seen)
        ends = (end for end in found if end > given.now)
        end = min(ends, default=None)
        if end is not None and self._expiry_of.get(name) != end:
            self._expiry_of[name] = end
            heapq.heappush(self._expiring, (end, name))

    def _expired(self, now: float) -> list[str]:
        found: dict[str, None] = {}
        while self._expiring and self._expiring[0][0] <= now:
            name = heapq.heappop(self._expiring)[1]
            self._expiry_of.pop(name, None)
            found[name] = None
        return list(found)

    # ------------------------------------------------------------------ quarantine

    def _stays_quarantined(self, record: JobRecord) -> bool:
        """Return whether a job stays quarantined. A job whose state has changed is tried again."""
        quarantined = self.quarantined.get(record.id)
        if quarantined is None:
            return False
        if record.live and quarantined.state is record.state:
            return True
        del self.quarantined[record.id]
        return False

    def _quarantine(self, name: str, error: Exception) -> None:
        record = self._ledger.job(name)
        if record is None:
            return
        log.error("job %s is set aside: the core cannot process it", name, exc_info=error)
        text = (
            f"The scheduler cannot process job {name[:8]} ({record.name}) and skips it: "
            f"{str(error).rstrip('.') or type(error).__name__}."
        )
        self.quarantined[name] = Quarantined(record.state, text)
        self._jobs.pop(JobId(name), None)
        self._jobs.pop(snapshots.leaving_id(name), None)

    def _blocked(self, jobs: Iterable[str]) -> frozenset[str]:
        """Return the GPUs that these jobs hold, which must not be allocated elsewhere (R1)."""
        entries = (self._ledger.counters.entry(job) for job in jobs)
        return frozenset(gpu for entry in entries if entry is not None for gpu in entry.gpus)

    def _culprit(self, given: PassInput) -> str | None:
        """Return the job that makes the core fail, or None.

        If the core accepts the unchanged jobs alone, only changed jobs are suspects. A binary
        search then finds the first suspect with which the core fails.
        """
        names = [name for name in list(self._ledger.job_index.live) if name not in self.quarantined]
        suspects = [name for name in names if name in given.touched]
        innocent = [name for name in names if name not in given.touched]
        if not suspects or self._fails(given, innocent):
            innocent, suspects = [], names
            if self._fails(given, []):
                return None
        if not self._fails(given, [*innocent, *suspects]):
            return None
        good, bad = 0, len(suspects)
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._fails(given, [*innocent, *suspects[:middle]]):
                bad = middle
            else:
                good = middle
        return suspects[good]

    def _fails(self, given: PassInput, names: Sequence[str]) -> bool:
        try:
            jobs = [job for name in names for job in self._seen(name, given)]
            self.decider(self._made(given.spec, jobs), given.now)
        except Exception:
            return True
        return False


def _without(given: PassInput, gpus: frozenset[str]) -> PassInput:
    """Return the input of a pass over the pool without these GPUs."""
    node_inputs = replace(given.spec.node_inputs, blocked=given.spec.node_inputs.blocked | gpus)
    return replace(given, spec=replace(given.spec, node_inputs=node_inputs))
