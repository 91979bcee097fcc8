"""All reason codes shown to users: why jobs and servers wait, leave or have ended."""

from __future__ import annotations

from enum import StrEnum
from itertools import takewhile


class ReasonCode(StrEnum):
    """Closed list of reasons, by their API names (R22)."""

    # Why a job waits, reported by a pass.
    POOL_FULL = "pool-full"
    """Too few GPUs are free, and the GPUs of other jobs cannot be reclaimed for it."""
    PROJECT_LIMIT = "project-limit"
    """The project or one of its ancestors would exceed its limit (R8)."""
    NON_PREEMPTIBLE_OVER_QUOTA = "non-preemptible-over-quota"
    """A non-preemptible job must fit into the guaranteed quota at every level (R8)."""
    FAIR_SHARE_REACHED = "fair-share-reached"
    """Too few GPUs are free, and the project would exceed both its quota and its fair share
    (R15).
    """
    VICTIMS_PROTECTED = "victims-protected"
    """The jobs that would be preempted have just started, or were preempted too often recently
    (R19).
    """
    CLAIM_DELAYED = "claim-delayed"
    """Long-running jobs will be preempted for it after a short delay, unless GPUs become free
    (R19).
    """
    LONG_RUNNING = "long-running"
    """It has run long already, so that beyond the quota it waits for free GPUs (R15)."""
    GANG_INCOMPLETE = "gang-incomplete"
    """Some of its workers would fit, but not all at once (R10)."""
    FRAGMENTED = "fragmented"
    """Enough GPUs are free, but not on one node."""
    WAITING_FOR_VICTIMS = "waiting-for-victims"
    """GPUs are promised to it. The preempted jobs are saving and leaving (R20)."""
    RESERVED_FOR_OTHERS = "reserved-for-others"
    """Free GPUs are kept for jobs that go first: promised (R20) or reserved (R14)."""
    LARGER_THAN_NODE = "larger-than-node"
    """No node is large enough for one of its workers. It can never run in this form."""
    LARGER_THAN_POOL = "larger-than-pool"
    """The whole pool is too small for it. It can never run in this form."""
    NO_SUCH_MODEL = "no-such-model"
    """No node has a GPU model that it accepts. It can never run in this form (R13)."""
    NODES_EXCLUDED = "nodes-excluded"
    """Nodes that could run it are excluded: its volume is elsewhere, or they rejected it."""
    NO_NODE_READY = "no-node-ready"
    """No node that could run it is ready."""
    NODES_CLOSED = "nodes-closed"
    """Nodes that could run it are closed, or will be before its time limit ends."""

    BUDGET_USED_UP = "budget-used-up"
    """Its project or user has used up the GPU-hours of the month. Jobs that ran before continue."""

    # Other conditions of a job, reported by the service.
    NEXT_PASS = "next-pass"  # noqa: S105
    """The job has just been queued, and no pass has processed it yet."""
    WAITS_FOR_JOBS = "waits-for-jobs"
    """It waits for other jobs to end, as submitted with ``after``. It is not queued yet."""
    SET_ASIDE = "set-aside"
    """The pool cannot decide about it and continues without it. Report this fault to an
    administrator.
    """
    NAMESPACE_QUOTA = "namespace-quota"
    """A quota or limit range of the cluster's namespace rejects its pods. It is retried."""
    SAFE_MODE = "safe-mode"
    """No new jobs start until an administrator decides, because the database lost data."""
    RUNS_UNRECORDED = "runs-unrecorded"
    """It runs already, in an attempt that is missing in the database. It is not started twice."""
    PREEMPTED = "preempted"
    """It is preempted for another job or a bench, and resumes by itself."""
    PAUSING_FOR_USER = "pausing-for-user"
    """A user or administrator paused it. It is saving."""
    CANCELLING = "cancelling"
    """A user or administrator cancelled it. It is ending."""
    PAUSED_BY_USER = "paused-by-user"
    """A user paused it. It waits to be resumed."""
    PAUSED_BY_ADMINISTRATOR = "paused-by-administrator"
    """An administrator paused it. Only an administrator can resume it."""
    LOST_REPEATEDLY = "lost-repeatedly"
    """It was lost right after its start several times in a row. It waits to be resumed."""
    LOST = "lost"
    """Its machine or supervisor was lost. It is queued again."""
    TRIES_AGAIN = "tries-again"
    """It failed and is retried shortly, as configured by the site or the job."""
    HANGING = "hanging"
    """It runs, but has shown no sign of life for a long time."""
    CANCELLED_BY_USER = "cancelled-by-user"
    """A user or administrator cancelled it."""
    STOPPED_EARLY = "stopped-early"
    """Its sweep ended it, because other trials perform better."""
    DEPENDENCY_FAILED = "dependency-failed"
    """It was not run, because a job that it depends on did not succeed."""
    EXIT_CODE = "exit-code"
    """It failed: its command ended with a nonzero exit code."""
    TIME_LIMIT = "time-limit"
    """It failed: it reached its time limit."""
    OUT_OF_MEMORY = "out-of-memory"
    """It failed: the machine's memory ran out."""
    COULD_NOT_START = "could-not-start"
    """It failed: its command could not be started."""
    RESULTS_NOT_DELIVERED = "results-not-delivered"
    """It succeeded, but its results could not be copied home."""

    # Why a notebook server waits for its build GPUs.
    CALLED_BACK = "bench-called-back"
    """Jobs that use its GPUs have received their notice, and are saving."""
    BENCHES_FULL = "benches-full"
    """Other benches, or non-preemptible jobs, hold the GPUs that it could get."""


OF_PASSES = frozenset(takewhile(lambda code: code is not ReasonCode.NEXT_PASS, ReasonCode))
"""Reasons that a pass gives to a waiting job."""
OF_LINES = frozenset({ReasonCode.CALLED_BACK, ReasonCode.BENCHES_FULL})
"""Reasons of servers in the bench queue. All other reasons are of jobs."""
