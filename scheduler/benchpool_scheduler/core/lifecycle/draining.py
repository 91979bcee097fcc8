"""Whether a machine takes starts, as one literal table (Slurm's drain).

A machine whose own fault kept a worker from starting takes no more starts. After a pause a trial
start is made, one at a time. Each failed trial doubles the pause, up to a limit. After a successful
trial the machine takes jobs again in the state ``WARY``. Until a worker of a job has started,
another fault continues with the pauses where they were.

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
"""First and longest pause before a trial, in seconds. Each is twice the one before."""


class Intake(StrEnum):
    """Which starts a machine takes."""

    OPEN = "open"
    """All starts."""
    CLOSED = "closed"
    """None. A trial follows after a pause."""
    TRYING = "trying"
    """None. A trial is running."""
    WARY = "wary"
    """All starts. The length of the next pause is kept."""


class Sign(StrEnum):
    """Event on a machine."""

    FAULT = "fault"
    """A worker could not start because of the machine."""
    STARTED = "started"
    """A worker of a job started."""
    DUE = "due"
    """The pause has ended."""
    FAILED = "failed"
    """The trial failed."""
    WORKED = "worked"
    """The trial succeeded."""


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
"""Next state by present state and event.

Events that are not listed change nothing: earlier starts may still end either way.
"""


def after(intake: Intake, sign: Sign) -> Intake:
    """Return the state of a machine after an event."""
    return TRANSITIONS[intake].get(sign, intake)


def takes(intake: Intake) -> bool:
    """Return whether jobs may be started there.

    >>> [takes(intake) for intake in Intake]
    [True, False, False, True]
    """
    return intake in (Intake.OPEN, Intake.WARY)


def pause_s(closings: int) -> float:
    """Return the pause before the next trial in seconds, after ``closings`` closings in a row.

    >>> [pause_s(closings) for closings in (1, 2, 3, 6, 7, 1000)]
    [1.0, 2.0, 4.0, 32.0, 60.0, 60.0]
    """
    return min(PAUSE_S[0] * 2.0 ** min(closings - 1, 30), PAUSE_S[1])
