"""Why an attempt ended otherwise than its owner wished: the closed list of causes."""

from __future__ import annotations

from enum import StrEnum


class EndCause(StrEnum):
    """What ended an attempt, as ``--retry-on`` and ``benchpool.yaml`` name it."""

    NODE_LOST = "node-lost"
    """Its machine or its supervisor was lost."""
    EVICTED = "evicted"
    """Its node put its pod out, for want of memory or disk."""
    NOT_TAKEN = "not-taken"
    """Its node did not take it; nothing ran."""
    MACHINE_FAULT = "machine-fault"
    """The machine ran out of something or failed; nothing ran."""
    NO_ROOM = "no-room"
    """A quota of the cluster's namespace let nothing of it in; nothing ran."""
    GPU_ERROR = "gpu-error"
    """A GPU failed: the driver told of an XID of the hardware, or the log ends with its error."""
    OUT_OF_GPU_MEMORY = "out-of-gpu-memory"
    """The log ends with an error about the memory of the GPU."""
    OUT_OF_MEMORY = "out-of-memory"
    """The machine's memory ran out, or what the job asked for of it."""
    TIME_LIMIT = "time-limit"
    """It ran into its time limit."""
    COULD_NOT_START = "could-not-start"
    """Its command, or its container, could not be started."""
    HANGING = "hanging"
    """It showed no sign of life for long and was stopped (``hanging`` of ``benchpool.yaml``)."""
    EXIT_CODE = "exit-code"
    """Its command ended with another exit code than 0, and nothing above is known of it."""


MOST_RETRIES = 10
"""A job is tried again at most so often after failures, all causes together."""


def cause_of(word: object) -> EndCause | None:
    """Return the cause of a word that a worker's record has; None for what is none.

    >>> cause_of("gpu-error"), cause_of("bad luck"), cause_of(None)
    (<EndCause.GPU_ERROR: 'gpu-error'>, None, None)
    """
    return (
        EndCause(word) if isinstance(word, str) and word in frozenset(map(str, EndCause)) else None
    )
