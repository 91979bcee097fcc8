"""Parked benches as pages show them: owner, progress and next step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from benchpool_scheduler.contract import Gpu, ParkedBench, ParkStep
from benchpool_scheduler.phrases import data_size
from benchpool_scheduler.web.pool_view import gpu_places, server_name
from benchpool_scheduler.web.words import Moment, moment

STEPS: Mapping[ParkStep, str] = MappingProxyType(
    {
        ParkStep.PARKING: "is being parked",
        ParkStep.PARKED: "is parked",
        ParkStep.RETURNING: "is returning",
        ParkStep.LOST: "was lost",
    }
)


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A bench that is parked, or being parked or restored.

    ``memory`` is the size of its kernel's memory on the GPU or in main memory. ``typed`` is the
    command that restores it, empty when none is needed.
    """

    key: str
    user: str
    server: str
    gpus: str
    step: str
    since: Moment
    memory: str
    text: str
    typed: str


def parked_rows(
    benches: Sequence[ParkedBench], gpus: Sequence[Gpu], now: datetime
) -> Sequence[ParkedRow]:
    """Return a row for each, the one that has been parked longest first."""
    return [
        ParkedRow(
            key=one.lease,
            user=one.user,
            server=server_name(one.server),
            gpus=gpu_places(gpus, one.gpus),
            step=STEPS[one.step],
            since=moment(one.since, now),
            memory=data_size(one.bytes),
            text=one.text,
            typed=f"benchpool unpark {one.lease}" if one.step is ParkStep.PARKED else "",
        )
        for one in sorted(benches, key=lambda it: it.since)
    ]
