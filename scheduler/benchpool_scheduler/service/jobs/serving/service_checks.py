"""Checks of a service before it is saved; every refusal names a remedy."""

from __future__ import annotations

from collections.abc import Iterable

from benchpool_scheduler.contract.serving import ServiceAccess, ServiceRequest
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.store.service_files import ServiceRecord


def check(asked: ServiceRequest) -> None:
    """Check a request by itself. Errors: InvalidInput."""
    sent = asked.submission
    if sent.workers != 1 or sent.min_workers is not None:
        raise InvalidInput(
            f"A replica is one worker, not {sent.workers}: say how many replicas with --min and "
            "--max.",
            field="workers",
            numbers={"workers": sent.workers},
        )
    if sent.time_limit_s is not None:
        raise InvalidInput(
            "A service has no end: leave out --time-limit, and stop it with "
            f"`benchpool stop-service {asked.name}`.",
            field="time_limit_s",
        )
    if sent.deadline is not None:
        raise InvalidInput("A service has no end: leave out --deadline.", field="deadline")
    if sent.after:
        raise InvalidInput(
            "A service cannot wait for other jobs: leave out --after.", field="after"
        )
    if (asked.access is ServiceAccess.GROUP) != (asked.group is not None):
        raise InvalidInput(
            "Say which group of the Hub may open it: --access group:NAME.", field="group"
        )
    if asked.max_replicas < asked.min_replicas and asked.max_replicas != 1:
        raise InvalidInput(
            f"At most {asked.max_replicas} replicas and at least {asked.min_replicas} cannot both "
            "be: raise --max.",
            field="max_replicas",
            numbers={"min": asked.min_replicas, "max": asked.max_replicas},
        )


def check_port(asked: ServiceRequest, others: Iterable[ServiceRecord]) -> None:
    """Refuse a fixed port for several replicas, or the port of another service.

    Errors: InvalidInput, Refused.
    """
    if asked.port is None:
        return
    if max(asked.min_replicas, asked.max_replicas) > 1:
        raise InvalidInput(
            f"Only one replica can listen on port {asked.port} of this machine: leave out --port "
            "and let the program listen on the port that it finds in PORT, or for {port} in its "
            "command; or have one replica.",
            field="port",
            numbers={"port": asked.port, "replicas": max(asked.min_replicas, asked.max_replicas)},
        )
    if any(it.port == asked.port and it.name != asked.name for it in others):
        raise Refused(
            f"Another service listens on port {asked.port} of this machine: take another, or leave "
            "out --port and let the program listen on the port that it finds in PORT.",
            code="port-taken",
            field="port",
            numbers={"port": asked.port},
        )
