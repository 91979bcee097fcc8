"""Idle detection for benches: steps from idle to due, at most one step per sample.

A bench is idle while no sample of its GPUs is above 1 %, nothing was executed, no kernel is busy
and no program runs in a terminal. A busy kernel beside an idle GPU is a *CPU phase*, which does not
count as idle. Time without measurements or reports does not count as idle either. If such time
exceeds a tenth of the whole ladder, the idle time starts again at zero.

>>> watch = IdleWatch()
>>> for minute in range(62):
...     quiet = Sighting(at=60.0 * minute, measured_s=60.0, activity=0.0, working=False)
...     before, watch = watch, looked(watch, quiet, IdleLadder())
...     if watch.step is not before.step:
...         print(minute, watch.step)
0 doubt
1 idle
15 told
45 asked
60 due
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType


class IdleStep(StrEnum):
    """State of a bench: in use, in doubt, or a step of the idle ladder."""

    USED = "used"
    CPU_PHASE = "cpu-phase"
    DOUBT = "doubt"
    IDLE = "idle"
    TOLD = "told"
    ASKED = "asked"
    DUE = "due"


class LookFound(StrEnum):
    """Result of one sample: use, doubt, or an idle time that reaches a step of the ladder."""

    SPARED = "spared"
    BUSY = "busy"
    WORKING = "working"
    DOUBTFUL = "doubtful"
    SHORT = "short"
    LONG = "long"
    LONGER = "longer"
    LONGEST = "longest"


def _row(*steps: IdleStep) -> Mapping[LookFound, IdleStep]:
    return MappingProxyType(dict(zip(LookFound, steps, strict=True)))


_USED, _CPU, _DOUBT = IdleStep.USED, IdleStep.CPU_PHASE, IdleStep.DOUBT
_IDLE, _TOLD, _ASKED, _DUE = IdleStep.IDLE, IdleStep.TOLD, IdleStep.ASKED, IdleStep.DUE

#                  spared busy   working doubtful short  long   longer  longest
TRANSITIONS: Mapping[IdleStep, Mapping[LookFound, IdleStep]] = MappingProxyType(
    {
        _USED: _row(_USED, _USED, _CPU, _DOUBT, _IDLE, _TOLD, _TOLD, _TOLD),
        _CPU: _row(_USED, _USED, _CPU, _DOUBT, _IDLE, _TOLD, _TOLD, _TOLD),
        _DOUBT: _row(_USED, _USED, _CPU, _DOUBT, _IDLE, _TOLD, _TOLD, _TOLD),
        _IDLE: _row(_USED, _USED, _CPU, _DOUBT, _IDLE, _TOLD, _TOLD, _TOLD),
        _TOLD: _row(_USED, _USED, _CPU, _DOUBT, _TOLD, _TOLD, _ASKED, _ASKED),
        _ASKED: _row(_USED, _USED, _CPU, _DOUBT, _ASKED, _ASKED, _ASKED, _DUE),
        _DUE: _row(_USED, _USED, _CPU, _DOUBT, _ASKED, _ASKED, _ASKED, _DUE),
    }
)
"""Next step by present step and result of a sample.

No step is skipped on the way up. A bench is due only after its owner got both notifications. A
sample without data never makes a bench due.
"""

RESTING = frozenset({IdleStep.IDLE, IdleStep.TOLD, IdleStep.ASKED, IdleStep.DUE})
"""Steps in which the idle time continues."""


@dataclass(frozen=True, slots=True)
class IdleLadder:
    """Idle times after which a bench is ``told``, ``asked`` and ``due``, in seconds.

    Attributes:
        busy_share: A GPU sample above this share counts as use.
        coverage: Least share of the time until a bench is due for which data must be known.
    """

    tell_s: float = 900.0
    ask_s: float = 2700.0
    act_s: float = 3600.0
    busy_share: float = 0.01
    coverage: float = 0.9


@dataclass(frozen=True, slots=True)
class Sighting:
    """One sample of a bench.

    Attributes:
        at: Time of the sample, in seconds. A clock that goes backwards releases nothing.
        measured_s: Seconds since the last sample for which measurements of all its GPUs exist.
        activity: Highest of these measurements, as a share, or None without measurements.
        working: A kernel is busy or a program runs in a terminal. None if not reported.
        executed: Something was executed since the last sample.
        spared: Its owner keeps it for now, or an exemption applies.
    """

    at: float
    measured_s: float = 0.0
    activity: float | None = None
    working: bool | None = None
    executed: bool = False
    spared: bool = False


@dataclass(frozen=True, slots=True)
class IdleWatch:
    """State of a bench's idle detection between two samples.

    Attributes:
        at: Time of the last sample, or None before the first.
        since: Start of the present idle time.
        known_s: Seconds of the idle time for which data is known.
    """

    step: IdleStep = IdleStep.USED
    at: float | None = None
    since: float = 0.0
    known_s: float = 0.0

    @property
    def idle_s(self) -> float:
        """Return the idle time, in seconds."""
        return 0.0 if self.at is None or self.step not in RESTING else self.at - self.since


def looked(watch: IdleWatch, seen: Sighting, ladder: IdleLadder) -> IdleWatch:
    """Return the idle state of a bench after another sample."""
    passed_s = 0.0 if watch.at is None else seen.at - watch.at
    known_s = min(seen.measured_s, max(passed_s, 0.0)) if _has_data(seen) else 0.0
    since = seen.at if watch.at is None else watch.since
    after = IdleWatch(watch.step, seen.at, since, watch.known_s + known_s)
    found = LookFound.DOUBTFUL if passed_s < 0 else _found(after, seen, ladder)
    step = TRANSITIONS[watch.step][found]
    if step in RESTING:
        return replace(after, step=step)
    return IdleWatch(step, at=seen.at, since=seen.at)


def _has_data(seen: Sighting) -> bool:
    return seen.activity is not None and seen.working is not None


def _found(after: IdleWatch, seen: Sighting, ladder: IdleLadder) -> LookFound:
    """Return the result of a sample. A sample without data of its own reaches no further step."""
    if seen.spared:
        return LookFound.SPARED
    if seen.executed or (seen.activity or 0.0) > ladder.busy_share:
        return LookFound.BUSY
    if seen.working:
        return LookFound.WORKING
    idle_s = seen.at - after.since
    too_little = idle_s - after.known_s > (1.0 - ladder.coverage) * ladder.act_s
    begins_without_data = after.step not in RESTING and not _has_data(seen)
    if idle_s <= 0 or too_little or begins_without_data:
        return LookFound.DOUBTFUL
    rungs = (
        (ladder.act_s, LookFound.LONGEST),
        (ladder.ask_s, LookFound.LONGER),
        (ladder.tell_s, LookFound.LONG),
    )
    reached = (found for least_s, found in rungs if idle_s >= least_s and _has_data(seen))
    return next(reached, LookFound.SHORT)
