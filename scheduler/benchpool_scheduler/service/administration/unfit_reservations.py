"""Check that reservations fit beside the guaranteed quotas of all projects."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from benchpool_scheduler.configuration import line_of, written
from benchpool_scheduler.core.fairness.reservations import unfit
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.observed.observations import Observations


def refuse(seen: Observations, gpus: int, now: float) -> None:
    """Refuse the first reservation with which more GPUs would be guaranteed than there are.

    Args:
        gpus: GPUs for training, without those set aside for benches.

    Errors: InvalidInput.
    """
    own = written(seen.configuration)
    found = unfit([it.project for it in own.projects], own.reservations, gpus, now)
    if found is None:
        return
    line = line_of(own.text, "reservations")
    place = own.source if line is None else f"{own.source}, line {line}"
    at = datetime.fromtimestamp(found.at_s, ZoneInfo(own.gpu_hours.time_zone))
    quotas = (
        "a project is guaranteed all GPUs"
        if found.quotas is None
        else f"all projects together are guaranteed {count(found.quotas, 'GPU')}"
    )
    raise InvalidInput(
        f"{place}: reservation {found.name} does not fit. At {at.isoformat(' ', 'minutes')[:16]} "
        f"({own.gpu_hours.time_zone}), {count(found.reserved, 'GPU')} would be reserved and "
        f"{quotas}, and training has {count(found.gpus, 'GPU')}. Reserve less, at another time, or "
        "lower a quota: reservations do not reduce quotas.",
        code="reservation-unfit",
        field="reservations",
        numbers={
            "reserved": found.reserved,
            "quotas": found.quotas,
            "gpus": found.gpus,
            "line": line,
        },
    )
