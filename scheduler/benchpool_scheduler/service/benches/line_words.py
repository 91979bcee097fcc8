"""Texts for servers in the bench queue; pure functions."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.contract import Reason
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.phrases import count, exactly, is_are


def called_back(asked: int, busy: int, grace_s: float) -> Reason:
    """Return the reason of a server whose GPUs jobs are leaving; ``busy`` GPUs are still in use."""
    return Reason(
        ReasonCode.CALLED_BACK.value,
        f"{count(busy, 'GPU')} of the {asked} {is_are(busy)} still in use by jobs that are "
        f"saving and stopping, which takes at most {exactly(grace_s)}.",
        {"asked": asked, "busy": busy, "grace_s": grace_s},
        "Nothing to do: the server starts by itself when they have stopped.",
    )


def benches_full(
    asked: int,
    models: tuple[str, ...],
    free: int,
    held: int,
    servers: int,
    closed: Sequence[str] = (),
) -> Reason:
    """Return the reason of a server that waits for other servers.

    Args:
        free: Largest number of free GPUs on one node. ``held``: GPUs held by ``servers`` servers.
        closed: Sentences about nodes that administrators closed.
    """
    which = f" of model {' or '.join(models)}" if models else ""
    return Reason(
        ReasonCode.BENCHES_FULL.value,
        f"{count(asked, 'GPU')}{which} {is_are(asked)} not free: {free} on one "
        f"machine now, {count(held, 'GPU')} held by {count(servers, 'other server')}."
        + "".join(f" {sentence}." for sentence in closed),
        {"asked": asked, "free": free, "held": held, "servers": servers},
        f"The server starts by itself when {until_free(servers, closed)}; or start without a GPU "
        "meanwhile.",
    )


def until_free(servers: int, closed: Sequence[str], before: int = 0) -> str:
    """Return what must happen before a server can start.

    Args:
        servers: Number of servers that hold suitable GPUs. ``before``: queued servers ahead of it.

    >>> until_free(2, ["gpu-01 drains"]), until_free(0, [])
    ('other servers have stopped or a closed machine is available', 'GPUs can be used again')
    """
    ways = ["the servers before it in the queue have started"] if before else []
    ways += ["other servers have stopped"] if servers else []
    ways += ["a closed machine is available"] if closed else []
    return " or ".join(ways or ["GPUs can be used again"])
