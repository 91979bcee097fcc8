"""Operations on users' services: programs that answer requests."""

from __future__ import annotations

from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import MIB, Given, given, operation
from benchpool_scheduler.contract.serving import (
    PoolService,
    ServiceRequest,
    ServicesQuery,
    ServiceStop,
)


class ServingOperations:
    """Creation, update, sleep, wake-up, stop and removal of services."""

    @operation(
        "POST",
        "services",
        PoolService,
        body=ServiceRequest,
        max_body=16 * MIB,
        lab=True,
        statuses={201: "Created or replaced, or already as requested."},
    )
    def serve(self, asked: ServiceRequest) -> Given:
        """Create a service, or replace it by a new version with ``update``."""
        return given(body=asked)

    @operation(
        "GET",
        "services",
        list[PoolService],
        query=ServicesQuery,
        lab=True,
        verb=PlainVerb(("services",), "List your services with their states and addresses."),
    )
    def services(self, all: bool = False, limit: int = 100) -> Given:
        """List services by name: your own, or all that you may open."""
        return given(query={"all": all, "limit": limit})

    @operation(
        "GET",
        "services/{service}",
        PoolService,
        lab=True,
        verb=PlainVerb(("service",), "Show a service: its replicas, requests and address."),
    )
    def service(self, name: str) -> Given:
        """Read a service."""
        return given(service=name)

    @operation(
        "POST",
        "services/{service}/sleep",
        PoolService,
        lab=True,
        verb=PlainVerb(("sleep-service",), "Free the GPUs of a service until its next request."),
    )
    def sleep_service(self, name: str) -> Given:
        """Put a service to sleep: replicas finish their requests; the next one wakes it."""
        return given(service=name)

    @operation(
        "POST",
        "services/{service}/wake",
        PoolService,
        lab=True,
        verb=PlainVerb(("wake-service",), "Wake a service that sleeps or was stopped."),
    )
    def wake_service(self, name: str) -> Given:
        """Wake a service so that it has replicas again."""
        return given(service=name)

    @operation(
        "POST",
        "services/{service}/stop",
        PoolService,
        body=ServiceStop,
        lab=True,
        verb=PlainVerb(("stop-service",), "Stop a service until it is woken; no request wakes it."),
    )
    def stop_service(self, name: str, reason: str | None = None) -> Given:
        """Stop a service: replicas finish their requests and end; requests do not wake it."""
        return given(ServiceStop(reason), service=name)

    @operation(
        "POST",
        "services/{service}/restart",
        PoolService,
        lab=True,
        verb=PlainVerb(
            ("restart-service",), "Replace all replicas of a service, one after the other."
        ),
    )
    def restart_service(self, name: str) -> Given:
        """Replace the replicas of a service by new ones of the same kind, as a new version."""
        return given(service=name)

    @operation(
        "POST",
        "services/{service}/remove",
        PoolService,
        body=ServiceStop,
        lab=True,
        verb=PlainVerb(("remove-service",), "Remove a service and end its replicas at once."),
    )
    def remove_service(self, name: str, reason: str | None = None) -> Given:
        """Remove a service and return its last state; its replicas end immediately."""
        return given(ServiceStop(reason), service=name)
