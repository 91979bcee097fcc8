"""Calibration of start estimates (R22), in the status of the pool's settings."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import Connection, KubeNotFound
from benchpool_scheduler.resources.pools import POOL_SETTINGS, StartCalibration
from benchpool_scheduler.store.records import CalibrationRecord

KIND, NAME = POOL_SETTINGS.kind, "default"


class _Status(Struct, frozen=True, rename="camel"):
    start_calibration: tuple[StartCalibration, ...] = ()


class _Settings(Struct, frozen=True):
    status: _Status = _Status()


async def read(connection: Connection) -> tuple[CalibrationRecord, ...]:
    """Return the saved records; empty in a cluster whose settings are not an object."""
    try:
        settings = await connection.get(KIND, NAME, as_=_Settings)
    except KubeNotFound:
        return ()
    return tuple(
        CalibrationRecord(it.kind, it.horizon, it.low, it.high, it.outcomes)
        for it in settings.status.start_calibration
    )


async def write(connection: Connection, known: tuple[CalibrationRecord, ...]) -> None:
    """Save all records."""
    records = [StartCalibration(it.kind, it.horizon, it.low, it.high, it.outcomes) for it in known]
    try:
        await connection.patch(
            *(KIND, NAME, {"status": {"startCalibration": records}}),
            subresource="status",
            as_=msgspec.Raw,
        )
    except KubeNotFound:
        return
