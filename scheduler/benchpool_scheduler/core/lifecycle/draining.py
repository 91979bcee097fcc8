"""Whether a machine takes starts, as one literal table (Slurm's drain).

A machine whose own fault kept a worker from starting takes no more starts. After a pause a start of
our own is tried, one at a time; each that fails makes the next pause longer. When one works, the
machine takes jobs again, warily: until one of them has really started, another fault goes on with
the pauses where they were.

>>> after(Intake.OPEN, Sign.FAULT), after(Intake.CLOSED, Sign.DUE)
(<Intake.CLOSED: 'closed'>, <Intake.TRYING: 'trying'>)
>>> after(Intake.CLOSED, Sign.STARTED)
<Intake.CLOSED: 'closed'>
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

PAUSE_S = (1.0, 60.0)
"""The first pause before a trial, and the longest; each is twice the one before."""


class Intake(StrEnum):
    """What a machine takes."""

    OPEN = "open"
    """Every start."""
    CLOSED = "closed"
    """None; a trial comes after a pause."""
    TRYING = "trying"
    """None; a trial is under way."""
    WARY = "wary"
    """Every start; the pauses are not forgotten yet."""


class Sign(StrEnum):
    """What happens to a machine."""

    FAULT = "fault"
    """A worker could not start, and the machine was why."""
    STARTED = "started"
    """A worker of a job started."""
    DUE = "due"
    """The pause is over."""
    FAILED = "failed"
    """The trial failed."""
    WORKED = "worked"
    """The trial worked."""


TRANSITIONS: Mapping[Intake, Mapping[Sign, Intake]] = MappingProxyType(
    {
        Intake.OPEN: MappingProxyType({Sign.FAULT: Intake.CLOSED}),
        Intake.CLOSED: MappingProxyType({Sign.DUE: Intake.TRYING}),
        Intake.TRYING: MappingProxyType(
            {Sign.FAILED: Intake.CLOSED, Sign.WORKED: Intake.WARY},
        ),
        Intake.WARY: MappingProxyType({Sign.FAULT: Intake.CLOSED, Sign.STARTED: Intake.OPEN}),
    }
)
"""A sign that is not here changes nothing: starts that were under way may still end either way."""


def after(intake: Intake, sign: Sign) -> Intake:
    """Return what a machine takes after a sign."""
    return TRANSITIONS[intake].get(sign, intake)


def takes(intake: Intake) -> bool:
    """Tell whether jobs may be started there.

    >>> [takes(intake) for intake in Intake]
    [True, False, False, True]
    """
    return intake in (Intake.OPEN, Intake.WARY)


def pause_s(closings: int) -> float:
    """Return the pause before the next trial, after so many closings in a row.

    >>> [pause_s(closings) for closings in (1, 2, 3, 6, 7, 1000)]
    [1.0, 2.0, 4.0, 32.0, 60.0, 60.0]
    """
    return min(PAUSE_S[0] * 2.0 ** min(closings - 1, 30), PAUSE_S[1])
