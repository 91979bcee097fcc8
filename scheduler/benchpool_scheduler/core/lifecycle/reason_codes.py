"""Every reason that is given to people, once: why jobs and servers wait, leave or have ended."""

from __future__ import annotations

from enum import StrEnum
from itertools import takewhile


class ReasonCode(StrEnum):
    """The closed list of reasons, as the API names them (R22)."""

    # Why a job waits, said by a pass.
    POOL_FULL = "pool-full"
    """Too little is free, and what others hold is theirs or may not be stopped."""
    PROJECT_LIMIT = "project-limit"
    """The project, or one above it, would hold more than its limit (R8)."""
    NON_PREEMPTIBLE_OVER_QUOTA = "non-preemptible-over-quota"
    """A job that may not be paused must fit the guaranteed quota at every level (R8)."""
    FAIR_SHARE_REACHED = "fair-share-reached"
    """Too little is free, and the project would pass both its quota and its share (R15)."""
    VICTIMS_PROTECTED = "victims-protected"
    """Jobs that would give way have just started, or were preempted too often lately (R19)."""
    CLAIM_DELAYED = "claim-delayed"
    """Long-running jobs give way to it in a moment, unless room comes free by itself (R19)."""
    LONG_RUNNING = "long-running"
    """It has run long already, so beyond the quota it goes on when room comes free (R15)."""
    GANG_INCOMPLETE = "gang-incomplete"
    """Some of its workers would fit, but not all at once (R10)."""
    FRAGMENTED = "fragmented"
    """Enough GPUs are free, but not on one node."""
    WAITING_FOR_VICTIMS = "waiting-for-victims"
    """Its GPUs are promised to it; jobs that give way are saving and leaving (R20)."""
    RESERVED_FOR_OTHERS = "reserved-for-others"
    """What is free is kept for jobs that go first: promised (R20), or reserved (R14)."""
    LARGER_THAN_NODE = "larger-than-node"
    """No node is large enough for one of its workers; it can never run as it is."""
    LARGER_THAN_POOL = "larger-than-pool"
    """The whole pool is too small for it; it can never run as it is."""
    NO_SUCH_MODEL = "no-such-model"
    """No node has a GPU model that it accepts; it can never run as it is (R13)."""
    NODES_EXCLUDED = "nodes-excluded"
    """The nodes that could run it are out for it: its volume is elsewhere, or they refused it."""
    NO_NODE_READY = "no-node-ready"
    """The nodes that could run it are not ready."""
    NODES_CLOSED = "nodes-closed"
    """The nodes that could run it are closed, or will be before its time limit ends."""

    BUDGET_USED_UP = "budget-used-up"
    """Its project or user has used up the GPU-hours of the month; what has run before goes on."""

    # Where a job is besides, said by the service.
    NEXT_PASS = "next-pass"  # noqa: S105
    """The job has just come into the queue; no pass has seen it yet."""
    SET_ASIDE = "set-aside"
    """The pool cannot decide about it and goes on without it; a fault to tell an administrator."""
    NAMESPACE_QUOTA = "namespace-quota"
    """A quota or limit range of the cluster's namespace lets no pod of it in; it tries again."""
    SAFE_MODE = "safe-mode"
    """Nothing new is started until an administrator decides: the database lost something."""
    RUNS_UNRECORDED = "runs-unrecorded"
    """It runs already, in an attempt that the database does not know; it is not started twice."""
    PREEMPTED = "preempted"
    """It is making room for others and resumes by itself."""
    PAUSING_FOR_USER = "pausing-for-user"
    """Somebody paused it; it is saving."""
    CANCELLING = "cancelling"
    """Somebody cancelled it; it is ending."""
    PAUSED_BY_USER = "paused-by-user"
    """Somebody paused it; it waits to be resumed."""
    PAUSED_BY_ADMINISTRATOR = "paused-by-administrator"
    """An administrator paused it; it waits to be resumed by one."""
    LOST_REPEATEDLY = "lost-repeatedly"
    """It was lost right after its start several times in a row; it waits to be resumed."""
    LOST = "lost"
    """Its machine or supervisor was lost; it queues again."""
    CANCELLED_BY_USER = "cancelled-by-user"
    """Somebody cancelled it."""
    EXIT_CODE = "exit-code"
    """It failed: its command ended with another exit code than 0."""
    TIME_LIMIT = "time-limit"
    """It failed: it ran into its time limit."""
    OUT_OF_MEMORY = "out-of-memory"
    """It failed: the machine's memory ran out."""
    COULD_NOT_START = "could-not-start"
    """It failed: its command could not be started."""

    # Why a notebook server waits for its build GPUs.
    CALLED_BACK = "bench-called-back"
    """Jobs that use its GPUs were told to leave, and are saving."""
    BENCHES_FULL = "benches-full"
    """Other benches, or work that may not be paused, hold what it could get."""


OF_PASSES = frozenset(takewhile(lambda code: code is not ReasonCode.NEXT_PASS, ReasonCode))
"""Those that a pass gives to a waiting job."""
OF_LINES = frozenset({ReasonCode.CALLED_BACK, ReasonCode.BENCHES_FULL})
"""Those of servers in line for benches; all the rest are of jobs."""
