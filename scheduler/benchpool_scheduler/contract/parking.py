"""Parked benches: the GPU is lent, and the kernel's GPU memory is kept in host memory."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class ParkStep(StrEnum):
    """Step of parking. ``LOST``: the kernel's GPU memory could not be brought back."""

    PARKING = "parking"
    PARKED = "parked"
    RETURNING = "returning"
    LOST = "lost"


class ParkedBench(Struct, frozen=True):
    """Bench that is being parked, is parked, or is coming back.

    Attributes:
        gpus: GPUs that it lends, or will lend.
        since: When parking was requested.
        bytes: GPU memory of its kernel, in bytes.
        text: State in a sentence.
    """

    lease: str
    user: str
    server: str
    gpus: list[str]
    step: ParkStep
    since: datetime
    bytes: int
    text: str
