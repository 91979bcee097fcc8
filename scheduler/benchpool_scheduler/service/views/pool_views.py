"""The pool as one object with its summary sentence, and one user's quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import get_args

import msgspec

from benchpool_scheduler import contract
from benchpool_scheduler.contract import GpuState
from benchpool_scheduler.core.fairness.gpu_hours import AccountKind
from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.core.model import Project
from benchpool_scheduler.phrases import count, hours_used, kept_days
from benchpool_scheduler.runtime import Part
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.access.membership import usable_projects
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.benches.bench_activity import idle_gpus, last_active
from benchpool_scheduler.service.ledger.hours_used import HoursUsed
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle.reservation_words import reserved
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views.gpu_states import GpuStates
from benchpool_scheduler.service.views.visibility import Visibility

WEEK_S = 7 * 24 * 3600.0
GIVEN_BACK = frozenset({"R3", "R15"})
"""Rules that reclaim GPUs beyond a quota: for benches that lent them, for projects below theirs."""


class PoolViews:
    """The pool in the form of the API.

    Attributes:
        gpu_states: State of each GPU. Its ``moved`` and ``see`` must be subscribed to updates.

    Args:
        bench_line: Returns the number of servers in the bench queue.
        reclaim_request: Returns administrators' reclaim requests for benches, by lease ID.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        hours: HoursUsed,
        bench_line: Callable[[], int] = lambda: 0,
        reclaim_request: Callable[[], Mapping[str, contract.ReclaimRequest]] = dict,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._hours = hours
        self._bench_line = bench_line
        self._reclaim_requests = reclaim_request
        self.gpu_states = GpuStates(ledger, observed)

    # ------------------------------------------------------------------ status

    def kept(self) -> str:
        """Return how long ended jobs and their parts are kept, in words."""
        keep = self._observed.now.configuration.retention
        return kept_days(keep.ended_days, {it: keep.days_of(it) for it in get_args(Part)})

    def status(self, caller: Caller, *, gpus: bool = True) -> contract.Status:
        """Return the pool. Holders are named only to callers who may see them.

        Args:
            gpus: Include every GPU; the list is empty otherwise.
        """
        counts, waiting, idle = self.counts(), self.waiting(), self._idle()
        problems = list(self._observed.now.problems.values())
        return contract.Status(
            text=sentence(counts, waiting, len(idle)),
            simulated=any(device.simulated for device in self._observed.now.inventory.devices),
            gpus=self._gpus(caller, idle) if gpus else [],
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
            url=self._observed.settings.base_url,
        )

    def waiting(self) -> int:
        """Return the number of waiting jobs."""
        return self._ledger.counters.in_queue()

    def running(self) -> int:
        """Return the number of running jobs."""
        return self._ledger.counters.states[JobState.RUNNING]

    def counts(self) -> Mapping[GpuState, int]:
        """Return the GPUs by state."""
        return self.gpu_states.counts

    def node_pools(self) -> Mapping[str, Mapping[str, int]]:
        """Return the numbers of nodes, GPUs and free GPUs of each node pool."""
        free = (GpuState.FREE, GpuState.BUILD_FREE)
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
            counts["free"] += sum(self.gpu_states.states.get(d.uuid) in free for d in devices)
        return found

    def event(self) -> bytes:
        """Return the public facts of the pool as JSON, the data of its events."""
        counts = self.counts()
        body = {
            "text": sentence(counts, self.waiting(), len(self._idle())),
            "counts": {state.value: count for state, count in counts.items()},
            "queue_length": self.waiting(),
            "running": self.running(),
            "bench_line": self._bench_line(),
        }
        return msgspec.json.encode(body)

    def _idle(self) -> Mapping[str, datetime]:
        """Return since when each GPU of an idle bench is idle, by UUID."""
        settings = self._observed.settings
        active = last_active(settings.directory)
        return idle_gpus(self._ledger.leases(), active, settings.clock.now()) if active else {}

    def _gpus(self, caller: Caller, idle: Mapping[str, datetime]) -> list[contract.Gpu]:
        """Return the GPUs by node and index."""
        rows = self.gpu_states.rows()
        if rights.rules_all(caller):
            shown = [row.gpu for row in rows]
        else:
            sees = Visibility(caller, self._observed).covers
            shown = [
                row.gpu if row.user is None or sees(row.user, row.project) else row.bare
                for row in rows
            ]
        if not idle:
            return shown
        return [
            msgspec.structs.replace(it, idle_since=idle[it.uuid]) if it.uuid in idle else it
            for it in shown
        ]

    # ------------------------------------------------------------------ quotas

    def quota(self, caller: Caller, user: str | None = None) -> contract.Quota:
        """Return a user's build quota with its holders, and the user's projects.

        Errors: NotFound for another user's quota.
        """
        name = caller.name if user is None else user
        rights.require_same_user(caller, name)
        if caller.kind == "user" and user in (None, caller.name):
            self._observed.meet(caller.as_hub_user())
        return self._quota(name, self._groups(caller, name))

    def _groups(self, caller: Caller, user: str) -> Mapping[str, int | None]:
        known = self._observed.now.hub_user(user)
        groups = {} if known is None else dict(known.groups)
        if user == caller.name:
            groups = {**dict.fromkeys(caller.groups), **groups}
        return groups

    def _quota(self, user: str, groups: Mapping[str, int | None]) -> contract.Quota:
        quota, rule = bench_reserve.quota_of(self._observed.now, user, groups)
        asked = self._reclaim_requests()
        leases = [lease for lease in self._ledger.leases() if lease.user == user]
        held = [
            contract.HeldBuild(lease.server, list(lease.gpus), asked.get(lease.id))
            for lease in leases
        ]
        lent = bench_reserve.lent_by(self._observed.now, user, {lease.id for lease in leases})
        free = max(0, quota - lent - sum(len(it.gpus) for it in held))
        member = Caller(user, groups=frozenset(groups))
        own = usable_projects(member, self._observed.now.configuration)
        return contract.Quota(
            user=user,
            build=contract.BuildQuota(quota=quota, rule=rule, held=held, free=free, lent=lent),
            projects=self._projects(settings.project for settings in own),
            gpu_hours=self._budget("user", user),
            values_gib=self._observed.now.configuration.budgets.values_gib,
        )

    def _budget(self, kind: AccountKind, name: str) -> contract.GpuHours | None:
        """Return a GPU-hour budget of this month with its use, or None without a budget."""
        account = self._hours.account(kind, name, self._observed.now.configuration)
        if account is None:
            return None
        return contract.GpuHours(
            used=round(account.used_h, 2),
            soft=account.budget.soft,
            hard=account.budget.hard,
            renewed=moment(self._hours.renewed()),
            text=hours_used(
                account.used_h, account.budget.soft, account.budget.hard, self._hours.renewal_day()
            ),
        )

    def _projects(self, projects: Iterable[Project]) -> list[contract.ProjectQuota]:
        allocated, waiting = self._usage()
        reclaimed_gpus, pauses = self._paid_back()
        now = self._observed.settings.clock.now()
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
                    parent=project.parent,
                    reclaimed_gpus=reclaimed_gpus[project.name],
                    pauses=pauses[project.name],
                    gpu_hours=self._budget("project", project.name),
                    guaranteed=project.quota if share is None else share.guaranteed,
                    reserved=reserved(project.name, self._observed.now.configuration, now),
                )
            )
        return found

    def _usage(self) -> tuple[Counter[str], Counter[str]]:
        """Return the GPUs held and the jobs waiting, of each project including those below it."""
        counters, above = self._ledger.counters, self._above()
        allocated: Counter[str] = Counter()
        waiting: Counter[str] = Counter()
        for name in counters.projects():
            held, waits = counters.held[name], counters.in_queue(name)
            for project in _upward(name, above):
                allocated[project] += held
                waiting[project] += waits
        return allocated, waiting

    def _paid_back(self) -> tuple[Counter[str], Counter[str]]:
        """Return the GPUs beyond quota that each project lost this week, and in how many pauses."""
        since = self._observed.settings.clock.now() - WEEK_S
        above, job = self._above(), self._ledger.job
        gpus: Counter[str] = Counter()
        pauses: Counter[str] = Counter()
        for one in self._ledger.preemptions_since(since):
            victim = job(one.job)
            claimant = None if one.claimant is None else job(one.claimant)
            if victim is None or one.rule not in GIVEN_BACK:
                continue
            if claimant is not None and claimant.project == victim.project:
                continue  # preemptions inside one project do not count
            for project in _upward(victim.project, above):
                gpus[project] += one.gpus
                pauses[project] += 1
        return gpus, pauses

    def _above(self) -> Mapping[str, str | None]:
        """Return the parent of each project."""
        return {str(p.name): p.project.parent for p in self._observed.now.configuration.projects}


def _upward(project: str, above: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a project and those above it."""
    at: str | None = project
    while at is not None:
        yield at
        at = above.get(at)


def sentence(counts: Mapping[GpuState, int], waiting: int, idle: int = 0) -> str:
    """Return the pool in one sentence whose numbers add up to all GPUs; ``idle`` are on benches.

    >>> print(sentence({GpuState.TRAIN_WITHIN_QUOTA: 4, GpuState.TRAIN_OVER_QUOTA: 1,
    ...     GpuState.BUILD_HELD: 2, GpuState.BUILD_FREE: 1, GpuState.FREE: 1}, 2))
    9 GPUs: 5 train, 2 held on benches, 1 kept free for benches, 1 free; 2 jobs wait.
    >>> print(sentence({GpuState.BUILD_HELD: 3, GpuState.FREE: 1}, 1, idle=2))
    4 GPUs: 1 held on benches, 2 held idle on benches, 1 free; 1 job waits.
    >>> print(sentence({GpuState.FREE: 1}, 0))
    1 GPU: 1 free; no job waits.
    """
    numbers = {state: counts.get(state, 0) for state in GpuState}
    work = numbers[GpuState.TRAIN_WITHIN_QUOTA] + numbers[GpuState.TRAIN_OVER_QUOTA]
    total = sum(numbers.values())
    parts = [f"{work} {'trains' if work == 1 else 'train'}"] if work else []
    idle = min(idle, numbers[GpuState.BUILD_HELD])
    if numbers[GpuState.BUILD_HELD] > idle:
        parts.append(f"{numbers[GpuState.BUILD_HELD] - idle} held on benches")
    parts += [f"{idle} held idle on benches"] if idle else []
    for state, words in (
        (GpuState.BUILD_FREE, "kept free for benches"),
        (GpuState.FOREIGN, "used by others"),
        (GpuState.BROKEN, "broken"),
        (GpuState.CLOSED, "closed by administrators"),
    ):
        if numbers[state]:
            parts.append(f"{numbers[state]} {words}")
    parts.append(f"{numbers[GpuState.FREE]} free")
    jobs = {0: "no job waits", 1: "1 job waits"}.get(waiting, f"{waiting} jobs wait")
    return f"{count(total, 'GPU')}: {', '.join(parts)}; {jobs}."
