"""Records of past use and of the accuracy of estimates; frozen."""

from __future__ import annotations

from msgspec import Struct


class UseRecord(Struct, frozen=True):
    """Decayed past use above quota by a project, or by one of its users (R7).

    Attributes:
        user: Empty for the project as a whole.
        gpu_s: GPU seconds, decayed to the time ``at``.
    """

    project: str
    user: str
    gpu_s: float
    at: float


class CalibrationRecord(Struct, frozen=True, rename="camel"):
    """Accuracy of start estimates, for one horizon and basis (R22).

    Attributes:
        low, high: Corrections of the bounds.
        outcomes: One character for each of the newest starts.
    """

    kind: str
    horizon: int
    low: float
    high: float
    outcomes: str
