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
            f"A replica has one worker, not {sent.workers}. Set the number of replicas with "
            "--min and --max.",
            field="workers",
            numbers={"workers": sent.workers},
        )
    if sent.time_limit_s is not None:
        raise InvalidInput(
            "A service has no end. Leave out --time-limit, and stop it with "
            f"`benchpool stop-service {asked.name}`.",
            field="time_limit_s",
        )
    if sent.deadline is not None:
        raise InvalidInput("A service has no end. Leave out --deadline.", field="deadline")
    if sent.after:
        raise InvalidInput(
            "A service cannot wait for other jobs. Leave out --after.", field="after"
        )
    if (asked.access is ServiceAccess.GROUP) != (asked.group is not None):
        raise InvalidInput(
            "Name the group of the Hub that may open it: --access group:NAME.", field="group"
        )
    if asked.max_replicas < asked.min_replicas and asked.max_replicas != 1:
        raise InvalidInput(
            f"--max is {asked.max_replicas}, less than --min, which is {asked.min_replicas}. "
            "Raise --max.",
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
            f"Only one replica can listen on port {asked.port} of this machine. Leave out --port "
            "and let the program listen on the port in its variable PORT, or in place of {port} "
            "in its command; or use one replica.",
            field="port",
            numbers={"port": asked.port, "replicas": max(asked.min_replicas, asked.max_replicas)},
        )
    if any(it.port == asked.port and it.name != asked.name for it in others):
        raise Refused(
            f"Another service listens on port {asked.port} of this machine. Use another port, or "
            "leave out --port and let the program listen on the port in its variable PORT.",
            code="port-taken",
            field="port",
            numbers={"port": asked.port},
        )
