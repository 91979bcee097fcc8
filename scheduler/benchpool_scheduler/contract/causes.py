"""Closed list of causes for an attempt that did not end as intended."""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """Cause of an attempt's end, as named by ``--retry-on`` and ``benchpool.yaml``."""

    NODE_LOST = "node-lost"
    """The machine or the supervisor of the attempt was lost."""
    EVICTED = "evicted"
    """The node evicted the pod for lack of memory or disk."""
    NOT_TAKEN = "not-taken"
    """The node rejected the pod. Nothing ran."""
    MACHINE_FAULT = "machine-fault"
    """The machine lacked a resource or failed. Nothing ran."""
    NO_ROOM = "no-room"
    """A quota of the cluster's namespace admitted none of the pods. Nothing ran."""
    GPU_ERROR = "gpu-error"
    """A GPU failed: the driver reported an XID of the hardware, or the log ends with its error."""
    OUT_OF_GPU_MEMORY = "out-of-gpu-memory"
    """The log ends with an out-of-memory error of the GPU."""
    OUT_OF_MEMORY = "out-of-memory"
    """The machine's memory ran out, or the job exceeded the memory that it requested."""
    TIME_LIMIT = "time-limit"
    """The job reached its time limit."""
    COULD_NOT_START = "could-not-start"
    """The command or the container could not be started."""
    HANGING = "hanging"
    """The job showed no activity and was stopped (``hanging`` in ``benchpool.yaml``)."""
    EXIT_CODE = "exit-code"
    """The command ended with a nonzero exit code, and no cause above is known."""


MOST_RETRIES = 10
"""Maximum number of retries of a job after failures, all causes together."""


def cause_of(word: object) -> EndCause | None:
    """Return the cause that a word of a worker's record names, or None.

    >>> cause_of("gpu-error"), cause_of("bad luck"), cause_of(None)
    (<EndCause.GPU_ERROR: 'gpu-error'>, None, None)
    """
    return (
        EndCause(word) if isinstance(word, str) and word in frozenset(map(str, EndCause)) else None
    )
