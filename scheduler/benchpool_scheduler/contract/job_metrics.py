"""What a job reports of itself over its steps, as its readers see it: one curve for each name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_POINTS = 1_000
"""Points of a curve that are kept."""


class MetricPoint(Struct, frozen=True):
    """One point of a curve."""

    step: int
    value: float


class Curve(Struct, frozen=True):
    """The values of one name over all attempts, by rising step.

    The four lists have one entry for each point. A value that was no finite number is null.
    ``after_s`` is in seconds since the ``begin`` of the answer. A pause lies between two points of
    different ``attempts``. Beyond 1,000 points a curve is thinned: its first, its last, its least
    and its greatest stay, and those of equal stretches. ``last``, ``min`` and ``max`` are null
    where no value was a number. ``goal`` is what is better by the words of the name; null where
    they do not say.
    """

    name: str
    steps: list[int]
    values: list[float | None]
    after_s: list[float]
    attempts: list[int]
    last: MetricPoint | None
    min: MetricPoint | None
    max: MetricPoint | None
    goal: Literal["min", "max"] | None = None


class JobMetrics(Struct, frozen=True):
    """Answer of ``metrics``: the curves of a job, in the order in which their names came.

    ``begin`` is when the first of these points was reported, null without any.
    """

    job: str
    name: str
    begin: datetime | None
    curves: list[Curve]


class MetricsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which curves of a job, and how fine."""

    name: (
        Annotated[str, Meta(max_length=100, description="Only the curve of this name.")] | None
    ) = None
    points: Annotated[
        int, Meta(ge=10, le=MOST_POINTS, description="At most so many points of each curve.")
    ] = MOST_POINTS
