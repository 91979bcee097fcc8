"""All known services, in memory and in files; a change is on disk before it is visible."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service.ledger.topic import Topic
from benchpool_scheduler.store.service_files import ServiceFiles, ServiceRecord


class ServiceBook:
    """The services by name, and the service of each replica's job.

    Attributes:
        changed: Publishes the name of each service that was saved or removed.

    Args:
        report: Called with a problem of the files, or None if there is none.
    """

    def __init__(self, folder: Path, report: Callable[[str, str | None], None]) -> None:
        self._files = ServiceFiles(folder)
        self._report = report
        self._services: dict[str, ServiceRecord] = {}
        self._writing = asyncio.Lock()
        self.changed: Topic[str] = Topic()

    async def open(self) -> None:
        """Read the files. Unreadable ones are reported and left in place."""
        try:
            found, broken = await asyncio.to_thread(self._files.read)
        except OSError as failed:
            self._report("services", f"Services cannot be read ({failed.strerror}).")
            return
        self._services = {service.name: service for service in found}
        problem = f"These services cannot be read: {', '.join(broken)}." if broken else None
        self._report("services", problem)

    def get(self, name: str) -> ServiceRecord | None:
        """Return a service by its name, or None."""
        return self._services.get(name)

    def all(self) -> list[ServiceRecord]:
        """Return all services, by name."""
        return [self._services[name] for name in sorted(self._services)]

    def of_job(self, job: str) -> str | None:
        """Return the name of the service whose replica a job is, or None."""
        return next(
            (it.name for it in self._services.values() if any(r.job == job for r in it.replicas)),
            None,
        )

    def port_of(self, job: str) -> int | None:
        """Return the port of a replica by its job, or None for another job."""
        replicas = (it for service in self._services.values() for it in service.replicas)
        return next((it.port for it in replicas if it.job == job), None)

    def is_repeated(self, job: str) -> bool:
        """Return whether a job is a replica whose version already had an earlier failed replica.

        Users are notified once of a version that fails repeatedly.
        """
        for service in self._services.values():
            versions = {it.job: it.version for it in service.replicas}
            versions |= {it.job: it.version for it in service.failures}
            if job in versions:
                alike = [it.job for it in service.failures if it.version == versions[job]]
                return bool(alike) and alike[-1] != job
        return False

    def ports(self) -> set[int]:
        """Return the ports of all replicas."""
        return {it.port for service in self._services.values() for it in service.replicas}

    def contents(self) -> set[str]:
        """Return the hashes of uploaded contents that future replicas need."""
        return {
            file.sha256 for service in self._services.values() for file in service.submission.files
        }

    async def put(self, service: ServiceRecord) -> None:
        """Save a service. Errors: Unavailable, and then nothing changes."""
        async with self._writing:
            try:
                await asyncio.to_thread(self._files.write, service)
            except OSError as failed:
                raise Unavailable(
                    f"The service could not be stored ({failed.strerror}); try again.",
                    code="not-stored",
                ) from None
            self._services[service.name] = service
        self.changed.publish(service.name)

    async def drop(self, service: ServiceRecord) -> None:
        """Remove a service. Errors: Unavailable."""
        async with self._writing:
            try:
                await asyncio.to_thread(self._files.remove, service.id)
            except OSError as failed:
                raise Unavailable(
                    f"The service could not be removed ({failed.strerror}); try again.",
                    code="not-stored",
                ) from None
            self._services.pop(service.name, None)
        self.changed.publish(service.name)
