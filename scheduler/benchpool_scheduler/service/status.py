"""The pool in one object, with its sentence; and one user's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from benchpool_scheduler import contract
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.model import Project
from benchpool_scheduler.core.states import HOLDS_GPUS, JobState
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service import benches, rights
from benchpool_scheduler.service.caller import Caller
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.outcome import Outcome
from benchpool_scheduler.service.site import Site
from benchpool_scheduler.service.submissions import usable_projects
from benchpool_scheduler.store.records import JobRecord, LeaseRecord


class PoolViews:
    """The pool as callers see it."""

    def __init__(self, ledger: Ledger, site: Site, outcome: Outcome) -> None:
        self._ledger = ledger
        self._site = site
        self._outcome = outcome

    # ------------------------------------------------------------------ status

    def status(self, caller: Caller) -> contract.Status:
        """Return the pool; holders are named only to those who may see them."""
        gpus = self._gpus(caller)
        counts = Counter(gpu.state for gpu in gpus)
        waiting = self.waiting()
        problems = list(self._site.problems.values())
        return contract.Status(
            text=sentence(counts, waiting),
            simulated=any(device.simulated for device in self._site.devices),
            gpus=gpus,
            counts={state: counts[state] for state in GpuState},
            projects=self._projects(p.project for p in self._site.configuration.projects),
            queue_length=waiting,
            running=sum(job.state is JobState.RUNNING for job in self._ledger.live()),
            health=contract.Health(
                ok=not problems,
                passes=self._outcome.passes,
                last_pass_ms=round(self._outcome.last_pass_s * 1000, 3),
                problems=problems,
            ),
        )

    def waiting(self) -> int:
        """Return the number of waiting jobs."""
        return sum(job.state is JobState.QUEUED for job in self._ledger.live())

    def counts(self) -> Mapping[GpuState, int]:
        """Return the GPUs by state."""
        states = self._states()
        return Counter(states[device.uuid] for device in self._site.devices)

    def text(self) -> str:
        """Return the pool's sentence."""
        return sentence(self.counts(), self.waiting())

    def _gpus(self, caller: Caller) -> list[contract.Gpu]:
        states = self._states()
        leases = {gpu: lease for lease in self._ledger.leases() for gpu in lease.gpus}
        jobs = self._jobs_by_gpu()
        return [
            self._gpu(caller, device, states[device.uuid], leases, jobs)
            for device in sorted(self._site.devices, key=lambda d: (d.node, d.index))
        ]

    def _gpu(
        self,
        caller: Caller,
        device: Device,
        state: GpuState,
        leases: Mapping[str, LeaseRecord],
        jobs: Mapping[str, JobRecord],
    ) -> contract.Gpu:
        lease, job = leases.get(device.uuid), jobs.get(device.uuid)
        if lease is not None and not rights.may_use_lease(caller, lease):
            lease = None
        if job is not None and not rights.may_use(caller, job, self._site.configuration):
            job = None
        holder = lease or job
        return contract.Gpu(
            uuid=device.uuid,
            index=device.index,
            model=device.model,
            node=device.node,
            simulated=device.simulated,
            state=state,
            memory_mib=device.memory_mib,
            user=None if holder is None else holder.user,
            job=None if job is None else job.id,
            server=None if lease is None else lease.server,
            note=device.note,
        )

    def _states(self) -> Mapping[str, GpuState]:
        """Return what each GPU is doing; of the free ones, those with the highest index are the
        ones shown as kept for benches."""
        leased = {gpu for lease in self._ledger.leases() for gpu in lease.gpus}
        jobs = self._jobs_by_gpu()
        over = self._over_quota(jobs)
        kept = dict(benches.kept_by_node(self._ledger, self._site))
        states: dict[str, GpuState] = {}
        for device in sorted(self._site.devices, key=lambda d: (d.node, -d.index)):
            state = _state(device, leased, jobs, over)
            if state is GpuState.FREE and kept.get(device.node, 0) > 0:
                kept[device.node] -= 1
                state = GpuState.BUILD_FREE
            states[device.uuid] = state
        return states

    def _jobs_by_gpu(self) -> Mapping[str, JobRecord]:
        found: dict[str, JobRecord] = {}
        for job in self._ledger.live():
            attempt = self._ledger.attempt(job.id, job.attempt)
            for worker in attempt.live_workers if attempt is not None else ():
                found.update(dict.fromkeys(worker.gpus, job))
        return found

    def _over_quota(self, jobs: Mapping[str, JobRecord]) -> frozenset[str]:
        """Return the GPUs above the quotas: of each project its newest jobs' last ones."""
        held: dict[str, list[tuple[float, str]]] = {}
        for gpu, job in jobs.items():
            held.setdefault(job.project, []).append((job.submitted, gpu))
        found: set[str] = set()
        for name, gpus in held.items():
            settings = self._site.configuration.project(name)
            quota = 0 if settings is None else settings.project.quota
            if quota is not None:
                found.update(gpu for _, gpu in sorted(gpus)[quota:])
        return frozenset(found)

    # ------------------------------------------------------------------ quotas

    def quota(self, user: str, groups: Mapping[str, int | None]) -> contract.Quota:
        """Return a user's build quota, what holds it, and the user's projects."""
        quota, rule = benches.quota_of(self._site, user, groups)
        held = [
            contract.HeldBuild(server=lease.server, gpus=list(lease.gpus))
            for lease in self._ledger.leases()
            if lease.user == user
        ]
        free = max(0, quota - sum(len(it.gpus) for it in held))
        member = Caller(user, groups=frozenset(groups))
        own = usable_projects(member, self._site.configuration)
        return contract.Quota(
            user=user,
            build=contract.BuildQuota(quota=quota, rule=rule, held=held, free=free),
            projects=self._projects(settings.project for settings in own),
        )

    def _projects(self, projects: Iterable[Project]) -> list[contract.ProjectQuota]:
        allocated, waiting = self._usage()
        found: list[contract.ProjectQuota] = []
        for project in projects:
            share = self._outcome.shares.get(project.name)
            found.append(
                contract.ProjectQuota(
                    name=project.name,
                    quota=project.quota,
                    fair_share=0 if share is None else share.fair_share,
                    allocated=allocated[project.name],
                    limit=project.limit,
                    waiting=waiting[project.name],
                )
            )
        return found

    def _usage(self) -> tuple[Counter[str], Counter[str]]:
        """Return the GPUs held and the jobs waiting in each project and all below it."""
        above = {str(p.name): p.project.parent for p in self._site.configuration.projects}
        allocated: Counter[str] = Counter()
        waiting: Counter[str] = Counter()
        for job in self._ledger.live():
            held, waits = self._held(job), job.state is JobState.QUEUED
            project: str | None = job.project
            while project is not None:
                allocated[project] += held
                waiting[project] += waits
                project = above.get(project)
        return allocated, waiting

    def _held(self, job: JobRecord) -> int:
        if job.state not in HOLDS_GPUS:
            return 0
        attempt = self._ledger.attempt(job.id, job.attempt)
        return sum(len(w.gpus) for w in attempt.live_workers) if attempt is not None else 0


def _state(
    device: Device,
    leased: set[str],
    jobs: Mapping[str, JobRecord],
    over: frozenset[str],
) -> GpuState:
    if device.state is DeviceState.BROKEN:
        return GpuState.BROKEN
    if device.uuid in leased:
        return GpuState.BUILD_HELD
    if device.uuid in jobs:
        return GpuState.TRAIN_OVER_QUOTA if device.uuid in over else GpuState.TRAIN_WITHIN_QUOTA
    return GpuState.FOREIGN if device.state is DeviceState.FOREIGN else GpuState.FREE


def sentence(counts: Mapping[GpuState, int], waiting: int) -> str:
    """Return the pool in one sentence.

    >>> print(sentence({GpuState.TRAIN_WITHIN_QUOTA: 4, GpuState.TRAIN_OVER_QUOTA: 1,
    ...     GpuState.BUILD_HELD: 2, GpuState.BUILD_FREE: 1, GpuState.FREE: 1}, 2))
    5 of 9 GPUs work, 2 held on benches, 1 kept free for benches, 1 free; 2 jobs wait.
    """
    count = {state: counts.get(state, 0) for state in GpuState}
    work = count[GpuState.TRAIN_WITHIN_QUOTA] + count[GpuState.TRAIN_OVER_QUOTA]
    total = sum(count.values())
    verb = "works" if work == 1 else "work"
    parts = [f"{work} of {total} {'GPU' if total == 1 else 'GPUs'} {verb}"]
    for state, words in (
        (GpuState.BUILD_HELD, "held on benches"),
        (GpuState.BUILD_FREE, "kept free for benches"),
        (GpuState.FOREIGN, "used by others"),
        (GpuState.BROKEN, "broken"),
    ):
        if count[state]:
            parts.append(f"{count[state]} {words}")
    parts.append(f"{count[GpuState.FREE]} free")
    jobs = {0: "no job waits", 1: "1 job waits"}.get(waiting, f"{waiting} jobs wait")
    return f"{', '.join(parts)}; {jobs}."
