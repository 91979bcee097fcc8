"""The pool in one object, with its sentence; and one user's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import Project
from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime import Device
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.access.membership import usable_projects
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.service.views.gpu_states import GpuStates
from benchpool_scheduler.service.views.sight import Sight


class PoolViews:
    """The pool as callers see it.

    Args:
        bench_line: Returns how many servers wait in line for build GPUs.
    """

    def __init__(
        self, ledger: Ledger, observed: Observed, bench_line: Callable[[], int] = lambda: 0
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._bench_line = bench_line
        self._gpu_states = GpuStates(ledger, observed)
        self._rows: dict[str, list[_Row]] = {}
        self._stale_rows: set[str] = set()

    # ------------------------------------------------------------------ status

    def status(self, caller: Caller, *, gpus: bool = True) -> contract.Status:
        """Return the pool; holders are named only to those who may see them.

        Args:
            gpus: Name every GPU; the list is empty otherwise.
        """
        counts, waiting = self.counts(), self.waiting()
        problems = list(self._observed.now.problems.values())
        return contract.Status(
            text=sentence(counts, waiting),
            simulated=any(device.simulated for device in self._observed.now.inventory.devices),
            gpus=self._gpus(caller) if gpus else [],
            counts={state: counts[state] for state in GpuState},
            projects=self._projects(p.project for p in self._observed.now.configuration.projects),
            queue_length=waiting,
            running=self.running(),
            health=contract.Health(
                ok=not problems,
                passes=self._observed.now.latest_pass.passes,
                last_pass_ms=round(self._observed.now.latest_pass.last_pass_s * 1000, 3),
                problems=problems,
            ),
            bench_line=self._bench_line(),
        )

    def waiting(self) -> int:
        """Return the number of waiting jobs."""
        return self._ledger.counters.states[JobState.QUEUED]

    def running(self) -> int:
        """Return the number of running jobs."""
        return self._ledger.counters.states[JobState.RUNNING]

    def counts(self) -> Mapping[GpuState, int]:
        """Return the GPUs by state."""
        self._refresh()
        return self._gpu_states.counts

    def node_pools(self) -> Mapping[str, Mapping[str, int]]:
        """Return of each pool of nodes how many nodes, GPUs and free GPUs it has."""
        free = (GpuState.FREE, GpuState.BUILD_FREE)
        self._refresh()
        inventory = self._observed.now.inventory
        found = {
            pool.name: {"nodes": 0, "gpus": 0, "free": 0}
            for pool in self._observed.now.configuration.pools
        }
        for node, pool in inventory.pools.items():
            devices = inventory.nodes[node]
            counts = found[pool]
            counts["nodes"] += 1
            counts["gpus"] += len(devices)
            counts["free"] += sum(self._gpu_states.states.get(d.uuid) in free for d in devices)
        return found

    def event(self) -> bytes:
        """Return what everybody may know of the pool, as JSON: the data of its events."""
        counts = self.counts()
        body = {
            "text": sentence(counts, self.waiting()),
            "counts": {state.value: count for state, count in counts.items()},
            "queue_length": self.waiting(),
            "running": self.running(),
            "bench_line": self._bench_line(),
        }
        return msgspec.json.encode(body)

    def _refresh(self) -> None:
        self._stale_rows.update(self._gpu_states.refresh())

    def _gpus(self, caller: Caller) -> list[contract.Gpu]:
        """Return the GPUs by node and index. Call ``counts`` before."""
        nodes = self._observed.now.inventory.nodes
        stale, self._stale_rows = self._stale_rows, set()
        for name in stale & nodes.keys():
            self._rows[name] = [self._row(device) for device in nodes[name]]
        rows = (row for name in nodes for row in self._rows[name])
        if rights.rules_all(caller):
            return [row.gpu for row in rows]
        sees = Sight(caller, self._observed).covers
        return [
            row.gpu if row.user is None or sees(row.user, row.project) else row.bare for row in rows
        ]

    def _row(self, device: Device) -> _Row:
        gpu = self._gpu(device)
        entry = None if gpu.job is None else self._ledger.counters.entry(gpu.job)
        bare = gpu if gpu.user is None else _without_holder(gpu)
        return _Row(gpu, bare, gpu.user, "" if entry is None else entry.project)

    def _gpu(self, device: Device) -> contract.Gpu:
        ledger, gpu = self._ledger, device.uuid
        lease = ledger.leased.get(gpu)
        # A bench and a job on one GPU is a breach that the auditor tells; here the bench is shown.
        job = ledger.counters.holders.get(gpu) if lease is None else None
        entry = None if job is None else ledger.counters.entry(job)
        holder = lease or entry
        return contract.Gpu(
            uuid=gpu,
            index=device.index,
            model=device.model,
            node=device.node,
            simulated=device.simulated,
            state=self._gpu_states.states[gpu],
            memory_mib=device.memory_mib,
            user=None if holder is None else holder.user,
            job=job,
            server=None if lease is None else lease.server,
            note=device.note,
        )

    # ------------------------------------------------------------------ quotas

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota:
        """Return a user's build quota, what holds it, and the user's projects.

        Errors: NotFound for somebody else's.
        """
        name = caller.name if user is None else user
        rights.require_same_user(caller, name)
        return self._quota(name, self._groups(caller, name))

    def _groups(self, caller: Caller, user: str) -> Mapping[str, int | None]:
        known = self._observed.now.hub_user(user)
        groups = {} if known is None else dict(known.groups)
        if user == caller.name:
            groups = {**dict.fromkeys(caller.groups), **groups}
        return groups

    def _quota(self, user: str, groups: Mapping[str, int | None]) -> contract.Quota:
        quota, rule = bench_reserve.quota_of(self._observed.now, user, groups)
        held = [
            contract.HeldBuild(server=lease.server, gpus=list(lease.gpus))
            for lease in self._ledger.leases()
            if lease.user == user
        ]
        free = max(0, quota - sum(len(it.gpus) for it in held))
        member = Caller(user, groups=frozenset(groups))
        own = usable_projects(member, self._observed.now.configuration)
        return contract.Quota(
            user=user,
            build=contract.BuildQuota(quota=quota, rule=rule, held=held, free=free),
            projects=self._projects(settings.project for settings in own),
        )

    def _projects(self, projects: Iterable[Project]) -> list[contract.ProjectQuota]:
        allocated, waiting = self._usage()
        found: list[contract.ProjectQuota] = []
        for project in projects:
            share = self._observed.now.latest_pass.shares.get(project.name)
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
        above = {str(p.name): p.project.parent for p in self._observed.now.configuration.projects}
        counters = self._ledger.counters
        allocated: Counter[str] = Counter()
        waiting: Counter[str] = Counter()
        for name in counters.projects():
            held, waits = counters.held[name], counters.by_state[name, JobState.QUEUED]
            project: str | None = name
            while project is not None:
                allocated[project] += held
                waiting[project] += waits
                project = above.get(project)
        return allocated, waiting


def _without_holder(row: contract.Gpu) -> contract.Gpu:
    return msgspec.structs.replace(row, user=None, job=None, server=None)


class _Row(NamedTuple):
    """A GPU for those who may see its holder, and for the others."""

    gpu: contract.Gpu
    bare: contract.Gpu
    user: str | None
    project: str


def sentence(counts: Mapping[GpuState, int], waiting: int) -> str:
    """Return the pool in one sentence.

    >>> print(sentence({GpuState.TRAIN_WITHIN_QUOTA: 4, GpuState.TRAIN_OVER_QUOTA: 1,
    ...     GpuState.BUILD_HELD: 2, GpuState.BUILD_FREE: 1, GpuState.FREE: 1}, 2))
    5 of 9 GPUs work, 2 held on benches, 1 kept free for benches, 1 free; 2 jobs wait.
    """
    numbers = {state: counts.get(state, 0) for state in GpuState}
    work = numbers[GpuState.TRAIN_WITHIN_QUOTA] + numbers[GpuState.TRAIN_OVER_QUOTA]
    total = sum(numbers.values())
    verb = "works" if work == 1 else "work"
    parts = [f"{work} of {count(total, 'GPU')} {verb}"]
    for state, words in (
        (GpuState.BUILD_HELD, "held on benches"),
        (GpuState.BUILD_FREE, "kept free for benches"),
        (GpuState.FOREIGN, "used by others"),
        (GpuState.BROKEN, "broken"),
    ):
        if numbers[state]:
            parts.append(f"{numbers[state]} {words}")
    parts.append(f"{numbers[GpuState.FREE]} free")
    jobs = {0: "no job waits", 1: "1 job waits"}.get(waiting, f"{waiting} jobs wait")
    return f"{', '.join(parts)}; {jobs}."
