"""When a bench is idle, and what follows of it: a ladder that is climbed one rung at a look.

A bench is idle while no sample of its GPUs is above one per cent, nothing was executed, no kernel
is busy and no program runs in a terminal. A busy kernel beside an idle GPU is a *CPU phase*, which
is left alone. What was not measured, or not told, is no idleness: where that is more than a tenth
of the whole ladder, it is begun anew.

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
    """Where a bench stands."""

    USED = "used"
    CPU_PHASE = "cpu-phase"
    DOUBT = "doubt"
    IDLE = "idle"
    TOLD = "told"
    ASKED = "asked"
    DUE = "due"


class LookFound(StrEnum):
    """What one look found: use, doubt, or an idle time that reaches a rung of the ladder."""

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
"""The next step, by the present one and what a look found. No rung is left out on the way up, so
nobody's bench is due who was not told and asked before; after a look that saw nothing it is not due
either."""

RESTING = frozenset({IdleStep.IDLE, IdleStep.TOLD, IdleStep.ASKED, IdleStep.DUE})
"""The steps in which an idle time goes on."""


@dataclass(frozen=True, slots=True)
class IdleLadder:
    """The times of a site: seconds of idleness until a bench is told, asked and due.

    Attributes:
        busy_share: A sample above this is use. ``coverage``: what part of the time until a bench
            is due must be known.
    """

    tell_s: float = 900.0
    ask_s: float = 2700.0
    act_s: float = 3600.0
    busy_share: float = 0.01
    coverage: float = 0.9


@dataclass(frozen=True, slots=True)
class Sighting:
    """What one look saw of a bench.

    Attributes:
        at: Seconds by a clock that should only go forward; one that does not releases nothing.
        measured_s: Seconds since the last look for which samples of all its GPUs speak.
        activity: Share of the most active of these samples, None for none.
        working: A kernel is busy or a program runs in a terminal; None where that is not told.
        executed: Something was executed since the last look.
        spared: Its owner keeps it for now, or an exemption holds.
    """

    at: float
    measured_s: float = 0.0
    activity: float | None = None
    working: bool | None = None
    executed: bool = False
    spared: bool = False


@dataclass(frozen=True, slots=True)
class IdleWatch:
    """What is remembered of a bench between two looks.

    Attributes:
        at: When it was last looked at, None for never. ``since``: when the idle time began that
            goes on; ``known_s``: seconds of it of which something is known.
    """

    step: IdleStep = IdleStep.USED
    at: float | None = None
    since: float = 0.0
    known_s: float = 0.0

    @property
    def idle_s(self) -> float:
        """For how long it has been idle."""
        return 0.0 if self.at is None or self.step not in RESTING else self.at - self.since


def looked(watch: IdleWatch, seen: Sighting, ladder: IdleLadder) -> IdleWatch:
    """Return what is known of a bench after another look."""
    passed_s = 0.0 if watch.at is None else seen.at - watch.at
    known_s = min(seen.measured_s, max(passed_s, 0.0)) if _told(seen) else 0.0
    since = seen.at if watch.at is None else watch.since
    after = IdleWatch(watch.step, seen.at, since, watch.known_s + known_s)
    found = LookFound.DOUBTFUL if passed_s < 0 else _found(after, seen, ladder)
    step = TRANSITIONS[watch.step][found]
    if step in RESTING:
        return replace(after, step=step)
    return IdleWatch(step, at=seen.at, since=seen.at)


def _told(seen: Sighting) -> bool:
    return seen.activity is not None and seen.working is not None


def _found(after: IdleWatch, seen: Sighting, ladder: IdleLadder) -> LookFound:
    """Return what a look found; one that saw nothing itself climbs no rung."""
    if seen.spared:
        return LookFound.SPARED
    if seen.executed or (seen.activity or 0.0) > ladder.busy_share:
        return LookFound.BUSY
    if seen.working:
        return LookFound.WORKING
    idle_s = seen.at - after.since
    too_little = idle_s - after.known_s > (1.0 - ladder.coverage) * ladder.act_s
    begins_untold = after.step not in RESTING and not _told(seen)
    if idle_s <= 0 or too_little or begins_untold:
        return LookFound.DOUBTFUL
    rungs = (
        (ladder.act_s, LookFound.LONGEST),
        (ladder.ask_s, LookFound.LONGER),
        (ladder.tell_s, LookFound.LONG),
    )
    reached = (found for least_s, found in rungs if idle_s >= least_s and _told(seen))
    return next(reached, LookFound.SHORT)
