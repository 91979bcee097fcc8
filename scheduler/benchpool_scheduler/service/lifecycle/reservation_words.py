"""Texts about quota reservations, for their projects and for jobs that wait because of them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from benchpool_scheduler.configuration import Configuration, written
from benchpool_scheduler.contract import Reason, ReservedGpus
from benchpool_scheduler.core.fairness.reservations import QuotaReservation, standing
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.phrases import count, is_are

CODES = frozenset({ReasonCode.POOL_FULL, ReasonCode.FAIR_SHARE_REACHED, ReasonCode.GANG_INCOMPLETE})
"""Reasons of jobs that lack GPUs which are held by or owed to other jobs."""


def with_reservations(
    reason: Reason, project: str, configuration: Configuration, now: float
) -> Reason:
    """Return a reason extended by the current reservations of other projects."""
    own = written(configuration)
    if not own.reservations or reason.code not in CODES:
        return reason
    above = {str(it.name) for it in configuration.upwards(project)}
    sentences = [
        f"{count(it.gpus, 'GPU')} {is_are(it.gpus)} reserved for project {it.project} until "
        f"{_end(it, own)}."
        for it in standing(own.reservations, now)
        if it.project not in above
    ]
    return (
        replace(reason, remedy=" ".join([reason.remedy.rstrip(), *sentences]))
        if sentences
        else reason
    )


def reserved(project: str, configuration: Configuration, now: float) -> list[ReservedGpus]:
    """Return the current reservations of a project and of those below it."""
    own = written(configuration)
    return [
        ReservedGpus(
            name=it.name,
            gpus=it.gpus,
            until=datetime.fromtimestamp(it.ends_s, UTC),
            text=f"{it.gpus} of them reserved until {_end(it, own)}",
        )
        for it in standing(own.reservations, now)
        if project in {str(above.name) for above in configuration.upwards(it.project)}
    ]


def _end(one: QuotaReservation, own: Configuration) -> str:
    zone = own.gpu_hours.time_zone
    end = datetime.fromtimestamp(one.ends_s, ZoneInfo(zone))
    return f"{end.isoformat(' ', 'minutes')[:16]} ({zone})"
