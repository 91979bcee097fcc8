"""When notice, SIGTERM and SIGKILL are due: pure, times are monotonic seconds.

A pause leaves a short while between notice and SIGTERM, because a program that only looks at its
notice file would otherwise die of the signal before it looks. A cancelled program has nothing to
save and gets both at once.
"""

from __future__ import annotations

LEAD_SHARE = 1 / 3
LEAD_MOST_S = 5.0
"""Part of the grace, and the most, that a paused worker has for itself before SIGTERM."""

LEFTOVER_S = 2.0
"""Grace of what a worker leaves running when it ends by itself."""


class Stop:
    """One stop of a worker: why, and the instants of its three steps."""

    __slots__ = ("by", "kill_at", "kind", "term_at")

    def __init__(self, kind: str, by: str, grace_s: float, now: float) -> None:
        lead = min(grace_s * LEAD_SHARE, LEAD_MOST_S) if kind == "pause" else 0.0
        self.kind = kind
        self.by = by
        self.term_at = now + lead
        self.kill_at = now + grace_s

    def hasten(self, grace_s: float, now: float) -> None:
        """A second stop may only shorten the time: a cancel after a pause."""
        self.kind = "cancel"
        self.term_at = min(self.term_at, now)
        self.kill_at = min(self.kill_at, now + grace_s)


def exit_code(status: int) -> int:
    """Return a wait status as the shell does: 128 + n after signal n.

    >>> exit_code(7 << 8), exit_code(9)
    (7, 137)
    """
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
