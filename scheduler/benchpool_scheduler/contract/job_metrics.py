"""Metrics that a job reports over its steps: one curve for each name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

MOST_POINTS = 1_000
"""Maximum number of points of a curve."""


class MetricPoint(Struct, frozen=True):
    """Point of a curve."""

    step: int
    value: float


class Curve(Struct, frozen=True):
    """Values of one name over all attempts, by increasing step.

    The four lists have one entry for each point. A value that was not a finite number is null.
    ``after_s`` is in seconds since the ``begin`` of the answer. A pause lies between two points of
    different ``attempts``.

    A curve of more than 1,000 points is thinned. It keeps its first, last, smallest and largest
    point, and points at equal distances. ``last``, ``min`` and ``max`` are null where no value was
    a number. ``goal`` is the better direction according to the words of the name, null where they
    do not show it.
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
    """Answer of ``metrics``: the curves of a job, in the order of their first reports.

    ``begin`` is when the first of these points was reported, null without any.
    """

    job: str
    name: str
    begin: datetime | None
    curves: list[Curve]


class MetricsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Filter of a job's curves, and their resolution."""

    name: (
        Annotated[str, Meta(max_length=100, description="Only the curve of this name.")] | None
    ) = None
    points: Annotated[
        int, Meta(ge=10, le=MOST_POINTS, description="Maximum number of points of each curve.")
    ] = MOST_POINTS
