"""Parked benches: the GPU is lent, and the kernel's GPU memory waits in the machine's memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class ParkStep(StrEnum):
    """How far it is. ``LOST``: the kernel's GPU memory could not be brought back."""

    PARKING = "parking"
    PARKED = "parked"
    RETURNING = "returning"
    LOST = "lost"


class ParkedBench(Struct, frozen=True):
    """A bench on its way to host memory, there, or on its way back.

    Attributes:
        gpus: The GPUs that it lends, or will. ``bytes``: GPU memory of its kernel.
        since: When it was asked to be parked. ``text``: how it stands, for people.
    """

    lease: str
    user: str
    server: str
    gpus: list[str]
    step: ParkStep
    since: datetime
    bytes: int
    text: str
