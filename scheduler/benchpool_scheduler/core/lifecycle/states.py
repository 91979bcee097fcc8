"""Job lifecycle as three literal tables. They define every change of a job's state.

Theory of operation
-------------------
A job is ``queued`` once its submission is on disk. When a pass has chosen its places it is
``starting``. When every worker runs it is ``running``. It ends in one of three terminal states and
never leaves them.

A job that holds GPUs can end in two ways. Its workers end by themselves, or a request ends them:
the pool's (preempt), or the user's (pause, cancel). A request takes time: the workers get a notice,
then a grace period. The job keeps its GPUs until the last worker is gone. Until then the request is
stored beside the state as an ``Intent``. A later request may replace an earlier one (``INTENTS``).
Cancel replaces every other request, and the user's pause replaces the pool's preempt. A resume
during a pause turns it into a preempt, so that the job is queued again by itself.

When all workers are gone, intent and outcome together determine the event (``ENDS``):

- exit 0 during a pause or preemption is success: the work is done (the pause contract);
- a cancelled job is cancelled whatever its exit status: many programs exit with 0 after SIGTERM;
- any other end during a request fulfils the request and is not a failure;
- after a loss of the machine the job is queued again and no retry is used, unless a request to
  pause or cancel it was made;
- a failure that is to be retried (``retries``) queues the job again, too.

A cancel of a job that holds GPUs does not change the state at once. The job keeps its state until
``Cancelled``. It is thus never reported as ended while its processes still write.

After a restart of the service only the stored state and intent remain. The runtime reports missed
events again, and they are applied then. An event that is not in the table for the present state is
an error of the caller and changes nothing (``machine.IllegalTransition``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    """State of a job, by its API name."""

    QUEUED = "queued"
    """It waits for GPUs and starts by itself. It has exactly one reason."""
    STARTING = "starting"
    """Its GPUs are chosen and held, but not all of its workers run yet."""
    RUNNING = "running"
    """All of its workers run."""
    PAUSING = "pausing"
    """Its workers have their notice. It holds its GPUs until the last one is gone."""
    PAUSED = "paused"
    """It holds nothing and waits to be resumed."""
    SUCCEEDED = "succeeded"
    """Every worker ended with exit status 0."""
    FAILED = "failed"
    """A worker ended with another exit status, reached its time limit, or could not start."""
    CANCELLED = "cancelled"
    """Its user, a lead or an administrator cancelled it."""


TERMINAL = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
"""Final states."""

HOLDS_GPUS = frozenset({JobState.STARTING, JobState.RUNNING, JobState.PAUSING})
"""States in which the job's workers hold their GPUs."""


class Intent(StrEnum):
    """Why the workers of a job have been asked to stop."""

    PREEMPT = "preempt"
    """The pool needs the GPUs. The job is queued again by itself."""
    PAUSE = "pause"
    """A user wants it to wait until it is resumed."""
    CANCEL = "cancel"
    """It is to end for good."""


class Outcome(StrEnum):
    """Joint outcome of all workers of a job."""

    OK = "ok"
    FAILED = "failed"
    LOST = "lost"
    AGAIN = "again"
    """It failed and is to be retried (``retries``)."""


@dataclass(frozen=True, slots=True)
class StartChosen:
    """A pass chose the job's places."""


@dataclass(frozen=True, slots=True)
class Started:
    """Every worker runs."""


@dataclass(frozen=True, slots=True)
class PreemptAsked:
    """A pass preempts the job for another job or a bench."""


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """A user requests a pause."""


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """A user requests that it resumes."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """A user requests its end for good."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """All workers are gone, each with exit status 0."""


@dataclass(frozen=True, slots=True)
class Failed:
    """All workers are gone, and the end counts as the job's own failure."""


@dataclass(frozen=True, slots=True)
class Lost:
    """All workers are gone because a machine, a GPU or a supervisor was lost."""


@dataclass(frozen=True, slots=True)
class TriedAgain:
    """All workers are gone after a failure that is to be retried (``retries``)."""


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
"""All allowed transitions: the next state, by state and event."""

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
"""The next intent, by request and present intent."""

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
"""The event after the end of the last worker, by intent and outcome."""
