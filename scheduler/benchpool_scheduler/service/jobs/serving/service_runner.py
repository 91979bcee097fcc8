"""Background task that runs services: it starts, drains and ends replicas, and records failures."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import pwd
from collections.abc import Callable, Collection

from msgspec.structs import replace

from benchpool_scheduler.contract import ENDED, JobSubmission, State
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.serving import replica_submissions
from benchpool_scheduler.service.jobs.serving.readiness import ReplicaPlace
from benchpool_scheduler.service.jobs.serving.replica_table import ReplicaTable, ScaleMemory
from benchpool_scheduler.service.jobs.serving.service_book import ServiceBook
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.serving.decisions import decide
from benchpool_scheduler.serving.facts import MOST_FAILURES, ServiceActs
from benchpool_scheduler.serving.states import ServiceMode, ServiceSign, mode_after
from benchpool_scheduler.serving.words import why_leaving, why_mode
from benchpool_scheduler.store.service_files import EndedReplica, ReplicaRecord, ServiceRecord

log = logging.getLogger(__name__)

AGAIN_S = 30.0
"""Time until a failed step is tried again, in seconds; a change triggers an earlier try."""
LOOKS_S, BUSY_LOOKS_S = 15.0, 2.0
"""Maximum interval between checks of an awake service, and of one with several replicas, in
seconds.
"""
UNOWNED_S = 300.0
"""Time without a known owner in the Hub after which a service is stopped, in seconds."""


class ServiceRunner:
    """Background task that processes services in turn, after each change.

    Attributes:
        problems: Reasons why the next replica could not start, by service.
    """

    def __init__(
        self,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        book: ServiceBook,
        table: ReplicaTable,
        prefix: str,
    ) -> None:
        self._ledger = ledger
        self._observed = observed
        self._admission = admission
        self._commands = commands
        self._book = book
        self._table = table
        self._prefix = prefix
        self._news = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._asked: set[str] = set()
        self._unowned: dict[str, float] = {}
        self.problems: dict[str, str] = {}
        table.watch.changed = self._answers

    def see(self, jobs: Collection[str]) -> None:
        """Wake the task if a replica's job has changed."""
        if any(self._book.of_job(job) is not None for job in jobs):
            self._news.set()

    def asked(self, name: str) -> None:
        """Note a request; it wakes a sleeping service."""
        service = self._book.get(name)
        if service is not None and ServiceMode(service.mode) is ServiceMode.ASLEEP:
            self._asked.add(name)
            self._news.set()

    def want(self) -> None:
        """Check all services soon, because requests have come or ended."""
        self._news.set()

    async def run(self) -> None:
        """Process all services until cancelled."""
        await self._ledger.whole.wait()
        try:
            while True:
                look_at = await self.look()
                wait_s = None if look_at is None else max(look_at - self._now, 0.05)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._news.wait()
                self._news.clear()
        finally:
            await self._table.watch.close()

    async def look(self) -> float | None:
        """Process each service; return the time of the next check, or None to wait for a change."""
        times = []
        for service in self._book.all():
            try:
                look_at = await self.carry_on(service.name)
            except BenchpoolError as error:
                self.problems[service.name] = visible(error.message)
                look_at = self._now + AGAIN_S
            except Exception:
                log.exception("service %s could not be processed", service.name)
                self.problems[service.name] = (
                    "The scheduler could not process it. See the scheduler's log."
                )
                look_at = self._now + AGAIN_S
            else:
                self.problems.pop(service.name, None)
            if look_at is not None:
                times.append(look_at)
        return min(times, default=None)

    async def carry_on(self, name: str) -> float | None:
        """Process a service; return the time at which it must be checked again without a change.

        Errors: those of accepting a replica's job.
        """
        async with self._one_at_a_time:
            return await self._carry_on(name)

    async def change(
        self, name: str, how: Callable[[ServiceRecord | None], ServiceRecord]
    ) -> ServiceRecord:
        """Change and save a service under the lock, and process it soon.

        Args:
            how: Returns the new record from the present one.

        Errors: those of ``how``; Unavailable.
        """
        async with self._one_at_a_time:
            known = self._book.get(name)
            service = how(known)
            if service != known:
                await self._book.put(service)
                self._news.set()
        return service

    async def end_all(self, name: str, why: str) -> None:
        """End all replicas of a service at once, and remove it. Errors: Unavailable."""
        async with self._one_at_a_time:
            service = self._book.get(name)
            if service is None:
                return
            for replica in service.replicas:
                await self._stop(replica.job, why)
            await self._book.drop(service)
            self._table.memory.pop(service.id, None)
            self._follow()

    async def _carry_on(self, name: str) -> float | None:
        service = self._book.get(name)
        if service is None:
            return None
        kept = self._owned(self._woken(self._closed(service)))
        if kept != service:
            await self._book.put(kept)
        self._follow()
        standing, now = self._table.standing(kept), self._now
        acts = decide(standing, self._table.traffic(kept), now)
        self._table.memory[kept.id] = ScaleMemory(acts.wanted, acts.enough_since)
        service = self._marked(kept, acts, now)
        if service != kept:
            await self._book.put(service)
        ends = {it.job: it.why for it in service.replicas}
        for job in acts.stop:
            await self._stop(job, ends[job])
        await self._accept_missing(service)
        for _ in range(acts.begin):
            service = await self._begin(service)
        if ServiceMode(service.mode) is ServiceMode.AWAKE:
            soon = now + (BUSY_LOOKS_S if service.max_replicas > 1 else LOOKS_S)
            return min(acts.look_at or soon, soon)
        return acts.look_at

    def _woken(self, service: ServiceRecord) -> ServiceRecord:
        """Return the service, woken if it had requests while asleep."""
        if service.name not in self._asked:
            return service
        self._asked.discard(service.name)
        return signed(service, ServiceSign.REQUEST, self._now)

    def _owned(self, service: ServiceRecord) -> ServiceRecord:
        """Return the service, stopped if the Hub has not known its owner for a while.

        The wait is needed because the Hub's list may lack the newest users.
        """
        seen, stopped = self._observed.now, str(ServiceMode.STOPPED)
        known = not seen.users.users or seen.hub_user(service.user) is not None
        if known or service.by_service or service.mode == stopped:
            self._unowned.pop(service.id, None)
            return service
        if self._now - self._unowned.setdefault(service.id, self._now) < UNOWNED_S:
            return service
        why = f"The Hub no longer knows {visible(service.user)}."
        kept = replace(service, mode=stopped, mode_since=self._now, said=why)
        return kept.noted(self._now, f"Stopped: {why}")

    def _marked(self, service: ServiceRecord, acts: ServiceActs, now: float) -> ServiceRecord:
        """Return the service with its new mode, and with its leaving replicas marked."""
        mode = service.mode
        if acts.mode is not ServiceMode(mode):
            service = signed(service, ServiceSign.IDLE, now)
        replicas = tuple(
            replace(it, leaving_since=now, why=why_leaving(acts.mode, it.version, service.version))
            if it.job in acts.leave
            else it
            for it in service.replicas
        )
        return replace(service, replicas=replicas)

    def _closed(self, service: ServiceRecord) -> ServiceRecord:
        """Return the service without ended replicas; failed ones are recorded."""
        over = [it for it in service.replicas if self._table.state(it) in ENDED]
        if not over:
            return service
        failed = [self._ended(it) for it in over if it.leaving_since is None]
        failures = sorted((*failed, *service.failures), key=lambda it: -it.at)
        left = tuple(it for it in service.replicas if it not in over)
        for it in failed:
            text = f"Replica {it.job[:8]} of version {it.version} ended: {it.text}"
            service = service.noted(it.at, text)
        return replace(service, replicas=left, failures=tuple(failures[:MOST_FAILURES]))

    def _ended(self, replica: ReplicaRecord) -> EndedReplica:
        job, since = self._ledger.job(replica.job), self._table.watch.since(replica.job)
        at = self._now if job is None or job.ended is None else job.ended
        ready_s = 0.0 if since is None else max(at - since, 0.0)
        reason = self._table.reason(replica)
        if self._table.state(replica) is State.SUCCEEDED:
            text = "It ended by itself with exit code 0, but a replica must keep running."
        else:
            text = "It ended." if reason is None else visible(reason.text)
        return EndedReplica(replica.job, at, replica.version, ready_s, text)

    def _follow(self) -> None:
        """Probe the readiness of all replicas whose programs run."""
        running = {
            it.job: ReplicaPlace(host, it.port, service.readiness, self._account(service))
            for service in self._book.all()
            for it in service.replicas
            if (host := self._table.host(it)) is not None
        }
        self._table.watch.follow(running)

    async def _begin(self, service: ServiceRecord) -> ServiceRecord:
        job = self._observed.settings.new_id()
        port = service.port or self._table.network.port(job, self._book.ports())
        replica = ReplicaRecord(job, service.version, port, self._now)
        self._admission.checked(self._caller(service), self._submission(service, replica))
        service = replace(service, replicas=(*service.replicas, replica))
        await self._book.put(service)
        await self._accept(service, replica)
        return service

    async def _accept_missing(self, service: ServiceRecord) -> None:
        """Accept the jobs of replicas that were recorded but not accepted before a restart."""
        for replica in service.replicas:
            if self._ledger.job(replica.job) is None:
                await self._accept(service, replica)

    async def _accept(self, service: ServiceRecord, replica: ReplicaRecord) -> None:
        submission = self._submission(service, replica)
        await self._admission.accept_as(self._caller(service), submission, replica.job)

    def _submission(self, service: ServiceRecord, replica: ReplicaRecord) -> JobSubmission:
        path = f"{self._prefix}s/{service.name}/"
        host = self._table.network.listen
        return replica_submissions.of_replica(service, host, replica.port, path)

    async def _stop(self, job_id: str, why: str) -> None:
        job = self._ledger.job(job_id)
        if (
            job is not None
            and job.live
            and not (job.stop_request is not None and job.stop_request.early)
        ):
            await self._commands.let_go(job.id, why)

    def _account(self, service: ServiceRecord) -> int | None:
        """Return the account of the service's replicas, or None without system accounts."""
        if self._observed.settings.accounts != "system":
            return None
        try:
            return pwd.getpwnam(service.user).pw_uid
        except KeyError:
            return None

    def _answers(self, job: str) -> None:
        """Publish that the readiness of a replica has changed."""
        name = self._book.of_job(job)
        if name is not None:
            self._book.changed.publish(name)
            self._news.set()

    def _caller(self, service: ServiceRecord) -> Caller:
        """Return the service's owner with the present rights."""
        if service.by_service:
            return Caller(service.user, kind="service")
        known = self._observed.now.hub_user(service.user)
        if known is None:
            return Caller(service.user)
        return Caller(service.user, admin=known.admin, groups=frozenset(known.groups))

    @property
    def _now(self) -> float:
        return self._observed.settings.clock.now()


def signed(
    service: ServiceRecord, sign: ServiceSign, now: float, by: str = "", why: str = ""
) -> ServiceRecord:
    """Return the service after an event; ``by`` names its cause, and ``why`` the reason."""
    mode = mode_after(ServiceMode(service.mode), sign)
    if mode is ServiceMode(service.mode):
        return service
    text = why_mode(sign, by, why)
    return replace(service, mode=str(mode), mode_since=now, said=text).noted(now, text)
