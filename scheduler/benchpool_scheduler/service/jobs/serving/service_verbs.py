"""Operations on services with access checks: create, read, change, remove."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec.structs import replace

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.serving import (
    PoolService,
    ServiceRequest,
    ServicesQuery,
)
from benchpool_scheduler.errors import NotFound, Refused, TooMany
from benchpool_scheduler.phrases import count, visible
from benchpool_scheduler.service.access import membership, rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.serving import replica_submissions, service_checks
from benchpool_scheduler.service.jobs.serving.readiness import ReadinessWatch
from benchpool_scheduler.service.jobs.serving.replica_network import ReplicaNetwork
from benchpool_scheduler.service.jobs.serving.replica_table import ReplicaTable
from benchpool_scheduler.service.jobs.serving.service_book import ServiceBook
from benchpool_scheduler.service.jobs.serving.service_runner import ServiceRunner, signed
from benchpool_scheduler.service.jobs.serving.service_views import ServiceViews
from benchpool_scheduler.service.jobs.serving.traffic import NoRequests
from benchpool_scheduler.service.jobs.uploads import UploadedContents
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.lifecycle import notices
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.service.views.job_views import JobViews
from benchpool_scheduler.serving.states import ServiceMode, ServiceSign
from benchpool_scheduler.serving.words import LeavingReason
from benchpool_scheduler.store.service_files import FOLDER, ServiceRecord

MOST = 20
"""Maximum number of services per user."""


class Services:
    """Operations on services, by name.

    Attributes:
        book: All known services. ``runner``: runs them. ``views``: views for readers.
    """

    def __init__(
        self,
        observed: SchedulerState,
        admission: Admission,
        book: ServiceBook,
        views: ServiceViews,
        runner: ServiceRunner,
    ) -> None:
        self._observed = observed
        self._admission = admission
        self.book = book
        self.views = views
        self.runner = runner

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        observed: SchedulerState,
        admission: Admission,
        commands: Commands,
        uploads: UploadedContents,
        views: JobViews,
        network: ReplicaNetwork,
    ) -> Services:
        """Return the operations with a new book, views and runner."""
        settings = observed.settings
        book = ServiceBook(settings.state / "scheduler" / FOLDER, observed.report)
        others = uploads.needed
        uploads.needed = lambda: others() | book.contents()
        table = ReplicaTable(
            ledger,
            ReadinessWatch(settings.clock),
            NoRequests(),
            lambda job: views.job(job, None),
            settings.clock.now(),
            network,
        )
        prefix = f"{urlsplit(settings.base_url).path.rstrip('/')}/"
        runner = ServiceRunner(ledger, observed, admission, commands, book, table, prefix)
        shown = ServiceViews(observed, table, runner)
        return cls(observed, admission, book, shown, runner)

    async def serve(self, caller: Caller, asked: ServiceRequest) -> PoolService:
        """Create a service, or replace it by a new version.

        Errors: those of submitting a job; Refused ``service-exists``; NotFound for an update of a
        missing service.
        """
        service_checks.check(asked)
        if self.views.table.network.shared:
            service_checks.check_port(asked, self.book.all())
        service = await self.runner.change(
            asked.name, lambda known: self._exchanged(caller, asked, known)
        )
        return self.views.shown(caller, service)

    def select(self, caller: Caller, query: ServicesQuery) -> list[PoolService]:
        """Return the caller's services by name; with ``all`` each one that the caller may open."""
        found = [
            it
            for it in self.book.all()
            if it.user == caller.name or (query.all and self.may_open(caller, it))
        ]
        return [self.views.shown(caller, it) for it in found[: query.limit]]

    def show(self, caller: Caller, name: str) -> PoolService:
        """Return a service that the caller may open. Errors: NotFound."""
        return self.views.shown(caller, self.opened(caller, name))

    def opened(self, caller: Caller, name: str) -> ServiceRecord:
        """Return the record of a service that the caller may open. Errors: NotFound."""
        service = self.book.get(name)
        if service is None or not self.may_open(caller, service):
            raise _no_service(name)
        return service

    def may_open(self, caller: Caller, service: ServiceRecord) -> bool:
        """Return whether the caller may open the address of a service."""
        return membership.may_open_service(caller, service, self._observed.now.configuration)

    async def sleep(self, caller: Caller, name: str) -> PoolService:
        """Release the GPUs of a service until the next request. Errors: NotFound, Unavailable."""
        return await self._sign(caller, name, ServiceSign.SLEEP)

    async def wake(self, caller: Caller, name: str) -> PoolService:
        """Allow a service replicas again. Errors: NotFound, Unavailable."""
        return await self._sign(caller, name, ServiceSign.WAKE)

    async def stop(self, caller: Caller, name: str, reason: str | None = None) -> PoolService:
        """Stop a service until it is woken.

        Errors: NotFound, Unavailable, InvalidInput without a required reason.
        """
        return await self._sign(caller, name, ServiceSign.STOP, reason)

    async def restart(self, caller: Caller, name: str) -> PoolService:
        """Replace the replicas of a service by new ones. Errors: NotFound, Unavailable."""

        def newer(_: ServiceRecord | None) -> ServiceRecord:
            service = self._changeable(caller, name)
            version = service.version + 1
            text = f"{visible(caller.name)} restarted it, as version {version}."
            return replace(service, version=version).noted(self._now, text)

        return self.views.shown(caller, await self.runner.change(name, newer))

    async def remove(self, caller: Caller, name: str, reason: str | None = None) -> PoolService:
        """End the replicas of a service at once and remove it. Errors: as ``stop``."""
        service = self._changeable(caller, name)
        rights.require_reason(caller, service.user, "cancel", reason, "service")
        shown = self.views.shown(caller, service)
        why = LeavingReason.REMOVED.value
        await self.runner.end_all(name, f"{why} {notices.reason_given(reason)}".rstrip())
        return shown

    async def _sign(
        self, caller: Caller, name: str, sign: ServiceSign, reason: str | None = None
    ) -> PoolService:
        def change(_: ServiceRecord | None) -> ServiceRecord:
            service = self._changeable(caller, name)
            if sign is ServiceSign.STOP:
                rights.require_reason(caller, service.user, "cancel", reason, "service")
            by, why = visible(caller.name), notices.reason_given(reason)
            return signed(service, sign, self._now, by, why)

        return self.views.shown(caller, await self.runner.change(name, change))

    def _exchanged(
        self, caller: Caller, asked: ServiceRequest, known: ServiceRecord | None
    ) -> ServiceRecord:
        """Return the service that replaces a known one or is created."""
        configuration = self._observed.now.configuration
        if known is None and asked.update:
            raise NotFound(
                f"There is no service {asked.name} to update. Leave out --update to start it.",
                field="name",
            )
        if known is None:
            self._check_number(caller)
        elif not rights.may_use_of(caller, known.user, known.project, configuration):
            raise _taken(asked.name)
        else:
            rights.require_owner_of_service(caller, known.user, by_service=known.by_service)
        service = self._checked(caller, asked, known)
        if known is not None and service != known and not asked.update:
            raise Refused(
                f"Service {asked.name} already exists with other content. Use --update to "
                "replace it, or choose another name.",
                code="service-exists",
                field="name",
            )
        return service

    def _check_number(self, caller: Caller) -> None:
        mine = sum(it.user == caller.name for it in self.book.all())
        if mine >= MOST:
            raise TooMany(
                f"You have {count(mine, 'service')}; the limit is {MOST}. Remove one that you no "
                "longer need.",
                code="too-many-services",
                numbers={"services": mine, "limit": MOST},
            )

    def _checked(
        self, caller: Caller, asked: ServiceRequest, known: ServiceRecord | None
    ) -> ServiceRecord:
        """Return the service of a request, or the known one if they are equal."""
        now = self._observed.settings.clock.now()
        first = ServiceRecord(
            id=self._observed.settings.new_id(),
            name=asked.name,
            user=caller.name,
            project="",
            created=now,
            submission=asked.submission,
            min_replicas=asked.min_replicas,
            max_replicas=max(asked.max_replicas, asked.min_replicas),
            idle_s=asked.idle_s,
            in_flight=asked.in_flight,
            access=asked.access,
            group=asked.group,
            readiness=asked.readiness,
            port=asked.port,
            keep_prefix=asked.keep_prefix,
            mode=str(ServiceMode.AWAKE),
            mode_since=now,
            said=f"{visible(caller.name)} started it.",
            by_service=caller.kind == "service",
        )
        if known is not None and asked.submission.project is None:
            sent = replace(asked.submission, project=known.project)
            first = replace(first, submission=sent)
        job = self._admission.checked(caller, self._a_replica(first))
        sent = replace(first.submission, project=job.project, key=None)
        service = replace(first, submission=sent, project=job.project)
        if known is None:
            return service.noted(now, service.said)
        kept = {it: getattr(known, it) for it in _KEPT}
        service = replace(service, **kept)
        if service == known:
            return known
        if _runs_alike(service, known):
            return service.noted(now, f"{visible(caller.name)} changed it; its replicas run on.")
        version = known.version + 1
        text = f"{visible(caller.name)} updated it to version {version}."
        return replace(service, version=version).noted(now, text)

    def _a_replica(self, service: ServiceRecord) -> JobSubmission:
        return replica_submissions.of_replica(service, self.views.table.network.listen, 1024, "/")

    def _changeable(self, caller: Caller, name: str) -> ServiceRecord:
        """Return a service that the caller may change. Errors: NotFound, Forbidden."""
        service = self.opened(caller, name)
        rights.require_may_change_service(
            caller, service.user, service.project, self._observed.now.configuration
        )
        return service

    @property
    def _now(self) -> float:
        return self._observed.settings.clock.now()


_KEPT = (
    *("id", "user", "created", "mode", "mode_since", "said", "version", "by_service"),
    *("replicas", "failures", "notes"),
)
"""Fields that a change of a service keeps."""


def _runs_alike(one: ServiceRecord, other: ServiceRecord) -> bool:
    """Return whether both have the same replicas, so that none must be replaced."""
    fields = ("submission", "project", "port", "readiness", "keep_prefix")
    return all(getattr(one, it) == getattr(other, it) for it in fields)


def _taken(name: str) -> Refused:
    return Refused(
        f"The name {name} is taken by another user's service. Choose another name.",
        code="service-exists",
        field="name",
    )


def _no_service(name: str) -> NotFound:
    return NotFound(
        f"There is no service with the name {name[:40]!r} that you may open; "
        "`benchpool services --all` lists them.",
        field="name",
    )
