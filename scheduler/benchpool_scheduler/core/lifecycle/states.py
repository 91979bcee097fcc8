"""The life of a job as three literal tables; whatever changes a job's state is in this file.

Theory of operation
-------------------
A job is born ``queued``, when its submission is on disk. A pass chooses its places and it is
``starting``; when every worker runs it is ``running``. Work ends in one of three terminal states
and never leaves them.

Two things can happen to a job that holds GPUs. Its workers may end by themselves, or somebody may
want them to end: the pool (preempt), its user (pause) or its user for good (cancel). A wish takes
time: the workers get a notice, then a grace period. Until the last of them is gone the job keeps
its GPUs and the wish is remembered beside the state as an ``Intent``. A later wish may replace an
earlier one (``INTENTS``): cancel outdoes everything, the user's pause outdoes the pool's preempt,
and a resume during a pause turns it into a mere preempt, so that the job queues again by itself.

When all workers are gone, intent and outcome together say which event that is (``ENDS``):

- exit 0 during a pause or preemption is success: the work is done (the pause contract);
- a cancelled job is cancelled whatever its exit status: many programs end a SIGTERM with 0;
- any other end under a wish is that wish fulfilled, not a failure;
- a machine that was lost is not the job's fault: it queues again and uses up no retry, unless its
  user wanted it paused or cancelled;
- a failure that is to be tried again (``retries``) queues again, too.

A cancel of a job that holds GPUs does not change the state at once: the job stays what it is until
``Cancelled``. Nobody is told that a job is over while its processes still write.

After a restart of the service the stored state and intent are all there is; events that happened
meanwhile are told again by the runtime and applied then. An event that is not in the table for
the present state is an error of the caller and changes nothing (``machine.IllegalTransition``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    """Where a job is in its life; the same words as on the wire."""

    QUEUED = "queued"
    """Waits for GPUs; goes on by itself. Has exactly one reason."""
    STARTING = "starting"
    """Its GPUs are chosen and held; not all of its workers run yet."""
    RUNNING = "running"
    """All of its workers run."""
    PAUSING = "pausing"
    """Its workers have their notice; it holds its GPUs until the last one is gone."""
    PAUSED = "paused"
    """Holds nothing and waits to be resumed."""
    SUCCEEDED = "succeeded"
    """Every worker ended with exit status 0."""
    FAILED = "failed"
    """A worker ended with another exit status, ran out of its time limit, or could not start."""
    CANCELLED = "cancelled"
    """Its user, a lead or an administrator ended it."""


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
"""States that no event leaves."""

HOLDS_GPUS = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSING})
"""States in which the job's workers hold their GPUs."""


class Intent(StrEnum):
    """Why the workers of a job have been told to stop."""

    PREEMPT = "preempt"
    """The pool needs the room; the job queues again by itself."""
    PAUSE = "pause"
    """Somebody wants it to wait until it is resumed."""
    CANCEL = "cancel"
    """It shall end for good."""


class Outcome(StrEnum):
    """How the last of the workers went, all of them taken together."""

    OK = "ok"
    FAILED = "failed"
    LOST = "lost"
    AGAIN = "again"
    """Failed, and to be tried again (``retries``)."""


@dataclass(frozen=True, slots=True)
class StartChosen:
    """A pass gave the job its places."""


@dataclass(frozen=True, slots=True)
class Started:
    """Every worker runs."""


@dataclass(frozen=True, slots=True)
class PreemptAsked:
    """A pass wants the job's GPUs for somebody else."""


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Somebody wants it paused."""


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Somebody wants it to go on."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """It shall end for good."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """All workers are gone, each with exit status 0."""


@dataclass(frozen=True, slots=True)
class Failed:
    """All workers are gone and the job's own fault ended it."""


@dataclass(frozen=True, slots=True)
class Lost:
    """All workers are gone because a machine, a GPU or a supervisor was lost."""


@dataclass(frozen=True, slots=True)
class TriedAgain:
    """All workers are gone after a failure that is to be tried again (``retries``)."""


@dataclass(frozen=True, slots=True)
class GaveWay:
    """All workers are gone after a preemption."""


@dataclass(frozen=True, slots=True)
class Parked:
    """All workers are gone after the user's pause."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """All workers are gone after a cancel."""


Event = (
    StartChosen
    | Started
    | PreemptAsked
    | PauseAsked
    | ResumeAsked
    | CancelAsked
    | Succeeded
    | Failed
    | Lost
    | TriedAgain
    | GaveWay
    | Parked
    | Cancelled
)

EVENTS: tuple[type[Event], ...] = (
    StartChosen,
    Started,
    PreemptAsked,
    PauseAsked,
    ResumeAsked,
    CancelAsked,
    Succeeded,
    Failed,
    Lost,
    TriedAgain,
    GaveWay,
    Parked,
    Cancelled,
)

_Q, _S, _R = JobState.QUEUED, JobState.STARTING, JobState.RUNNING
_PG, _PD = JobState.PAUSING, JobState.PAUSED
_OK, _BAD, _OFF = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED

TRANSITIONS: Mapping[JobState, Mapping[type[Event], JobState]] = MappingProxyType(
    {
        _Q: {StartChosen: _S, PauseAsked: _PD, CancelAsked: _OFF},
        _S: {
            Started: _R,
            PreemptAsked: _PG,
            PauseAsked: _PG,
            CancelAsked: _S,
            Succeeded: _OK,
            Failed: _BAD,
            Lost: _Q,
            TriedAgain: _Q,
            Cancelled: _OFF,
        },
        _R: {
            PreemptAsked: _PG,
            PauseAsked: _PG,
            CancelAsked: _R,
            Succeeded: _OK,
            Failed: _BAD,
            Lost: _Q,
            TriedAgain: _Q,
            Cancelled: _OFF,
        },
        _PG: {
            # A worker of a gang may report that it runs after its notice was written.
            Started: _PG,
            PauseAsked: _PG,
            ResumeAsked: _PG,
            CancelAsked: _PG,
            Succeeded: _OK,
            GaveWay: _Q,
            Parked: _PD,
            Cancelled: _OFF,
        },
        _PD: {ResumeAsked: _Q, CancelAsked: _OFF},
        _OK: {},
        _BAD: {},
        _OFF: {},
    }
)
"""Every legal step: state, then event, gives the next state."""

INTENTS: Mapping[type[Event], Mapping[Intent | None, Intent | None]] = MappingProxyType(
    {
        PreemptAsked: {
            None: Intent.PREEMPT,
            Intent.PREEMPT: Intent.PREEMPT,
            Intent.PAUSE: Intent.PAUSE,
            Intent.CANCEL: Intent.CANCEL,
        },
        PauseAsked: {
            None: Intent.PAUSE,
            Intent.PREEMPT: Intent.PAUSE,
            Intent.PAUSE: Intent.PAUSE,
            Intent.CANCEL: Intent.CANCEL,
        },
        ResumeAsked: {
            None: None,
            Intent.PREEMPT: Intent.PREEMPT,
            Intent.PAUSE: Intent.PREEMPT,
            Intent.CANCEL: Intent.CANCEL,
        },
        CancelAsked: {
            None: Intent.CANCEL,
            Intent.PREEMPT: Intent.CANCEL,
            Intent.PAUSE: Intent.CANCEL,
            Intent.CANCEL: Intent.CANCEL,
        },
    }
)
"""What is wished of the workers after a wish: event, then the wish so far, gives the wish now."""

ENDS: Mapping[Intent | None, Mapping[Outcome, type[Event]]] = MappingProxyType(
    {
        None: {
            Outcome.OK: Succeeded,
            Outcome.FAILED: Failed,
            Outcome.LOST: Lost,
            Outcome.AGAIN: TriedAgain,
        },
        Intent.PREEMPT: {
            Outcome.OK: Succeeded,
            Outcome.FAILED: GaveWay,
            Outcome.LOST: GaveWay,
            Outcome.AGAIN: GaveWay,
        },
        Intent.PAUSE: {
            Outcome.OK: Succeeded,
            Outcome.FAILED: Parked,
            Outcome.LOST: Parked,
            Outcome.AGAIN: Parked,
        },
        Intent.CANCEL: {
            Outcome.OK: Cancelled,
            Outcome.FAILED: Cancelled,
            Outcome.LOST: Cancelled,
            Outcome.AGAIN: Cancelled,
        },
    }
)
"""Which event it is when the last worker is gone: intent, then outcome."""
