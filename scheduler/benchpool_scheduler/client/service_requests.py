"""Conversion of terminal words or Python keywords to a service request."""

from __future__ import annotations

import re

import msgspec

from benchpool_scheduler.contract import JobSubmission, durations
from benchpool_scheduler.contract.serving import (
    SERVICE_NAME,
    ServiceAccess,
    ServiceRequest,
)
from benchpool_scheduler.errors import InvalidInput

TAKEN = frozenset(
    {
        "gpus",
        "project",
        "priority",
        "preemptible",
        "gpu_models",
        "cpus",
        "memory_gib",
        "env",
        "tags",
    }
)
"""Options of ``submit`` that a service takes, by their fields."""


def request_of(
    name: str,
    submission: JobSubmission,
    *,
    port: int | None = None,
    min: int = 1,
    max: int | None = None,
    idle: float | str = 900,
    in_flight: int = 8,
    readiness: str = "/",
    access: str = "owner",
    keep_prefix: bool = False,
    update: bool = False,
) -> ServiceRequest:
    """Return the service request for these values.

    Args:
        max: Maximum of replicas. Default: ``min``, but at least 1.
        idle: Seconds, or a duration such as ``10m``.
        access: ``owner``, ``project``, ``group:NAME`` or ``everyone``.

    Errors: InvalidInput.

    >>> from benchpool_scheduler.contract import CommandEntry
    >>> asked = request_of("llm", JobSubmission(CommandEntry(["serve"])), min=0, idle="10m",
    ...     access="group:nlp")
    >>> asked.min_replicas, asked.max_replicas, asked.idle_s, str(asked.access), asked.group
    (0, 1, 600, 'group', 'nlp')
    """
    if not re.fullmatch(SERVICE_NAME, name):
        raise InvalidInput(
            f"{name[:60]!r} cannot be part of an address. Use 1 to 40 lowercase letters, digits "
            "and hyphens, without a hyphen at the ends.",
            field="name",
        )
    kind, group = access_of(access)
    most = max if max is not None else (min or 1)
    try:
        return msgspec.convert(
            msgspec.structs.asdict(
                ServiceRequest(
                    name=name,
                    submission=submission,
                    min_replicas=min,
                    max_replicas=most,
                    idle_s=durations.read(str(idle), "idle", "idle_s", 1, 366 * 24 * 3600),
                    in_flight=in_flight,
                    access=kind,
                    group=group,
                    readiness=readiness,
                    port=port,
                    keep_prefix=keep_prefix,
                    update=update,
                )
            ),
            ServiceRequest,
        )
    except msgspec.ValidationError as wrong:
        raise InvalidInput(f"{wrong}.", field="readiness") from None


def access_of(text: str) -> tuple[ServiceAccess, str | None]:
    """Return the access level of a service, and its group. Errors: InvalidInput.

    >>> access_of("project"), access_of("group:nlp")[1]
    ((<ServiceAccess.PROJECT: 'project'>, None), 'nlp')
    """
    kind, _, group = text.partition(":")
    known = {it.value: it for it in ServiceAccess}
    if kind not in known or (kind == "group") != bool(group):
        raise InvalidInput(
            f"access {text[:60]} is not known. Use owner, project, group:NAME or everyone.",
            field="access",
        )
    return known[kind], group or None
