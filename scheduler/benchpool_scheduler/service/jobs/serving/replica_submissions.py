"""Submission of a replica: the service's submission with the replica's host and port filled in."""

from __future__ import annotations

import re

from msgspec.structs import replace

from benchpool_scheduler.contract import CommandEntry, JobSubmission, ModuleEntry, ScriptEntry
from benchpool_scheduler.contract.spec import IfHanging
from benchpool_scheduler.contract.submission import Entry
from benchpool_scheduler.store.service_files import ServiceRecord

ABOVE_TRAINING = 500
"""Priority added to that of the submission, so that inference goes before training."""
MOST_PRIORITY = 1000
_WORD = re.compile(r"\{(port|host|prefix)\}")


def of_replica(service: ServiceRecord, host: str, port: int, prefix: str) -> JobSubmission:
    """Return the submission of a replica.

    Args:
        host, port: Address on which it listens. ``prefix``: the path of the service's address.

    >>> from benchpool_scheduler.contract.serving import ServiceAccess
    >>> sent = JobSubmission(CommandEntry(["serve", "--port={port}", "{host}{prefix}", "{x}"]))
    >>> service = ServiceRecord(id="k" * 26, name="llm", user="susan", project="vision",
    ...     created=0.0, submission=sent, min_replicas=1, max_replicas=1, idle_s=900, in_flight=8,
    ...     access=ServiceAccess.OWNER, readiness="/", mode="awake", mode_since=0.0)
    >>> replica = of_replica(service, "0.0.0.0", 40123, "/s/llm/")
    >>> replica.name, replica.entry.argv, replica.env["PORT"], replica.priority
    ('llm v1', ['serve', '--port=40123', '0.0.0.0/s/llm/', '{x}'], '40123', 550)
    """
    sent = service.submission
    values = {"host": host, "port": str(port), "prefix": prefix}
    return replace(
        sent,
        name=f"{service.name} v{service.version}",
        key=None,
        entry=_filled(sent.entry, values),
        env={
            **{name: _put(text, values) for name, text in sent.env.items()},
            "HOST": host,
            "PORT": str(port),
            "SERVICE_NAME": service.name,
            "SERVICE_PREFIX": prefix,
        },
        priority=min(sent.priority + ABOVE_TRAINING, MOST_PRIORITY),
        retries=0,
        retry_on=(),
        if_hanging=IfHanging.NOTHING,
        output_dir=None,
    )


def _filled(entry: Entry, values: dict[str, str]) -> Entry:
    match entry:
        case ScriptEntry() | ModuleEntry():
            return replace(entry, args=[_put(word, values) for word in entry.args])
        case CommandEntry():
            return replace(entry, argv=[_put(word, values) for word in entry.argv])
    return entry


def _put(text: str, values: dict[str, str]) -> str:
    """Replace the named placeholders by values; other braces stay as they are."""
    return _WORD.sub(lambda found: values[found[1]], text)
