"""Past use, and how true estimates were: frozen."""

from __future__ import annotations

from msgspec import Struct


class UseRecord(Struct, frozen=True):
    """Decayed past use above quota of a project, or of one of its users (R7).

    Attributes:
        user: Empty for the project as a whole.
        gpu_s: GPU seconds as they counted ``at`` that instant.
    """

    project: str
    user: str
    gpu_s: float
    at: float


class CalibrationRecord(Struct, frozen=True, rename="camel"):
    """How true estimates of starts were, of one horizon and basis (R22).

    Attributes:
        low, high: By which bounds are moved. ``outcomes``: a sign for each of the newest starts.
    """

    kind: str
    horizon: int
    low: float
    high: float
    outcomes: str
