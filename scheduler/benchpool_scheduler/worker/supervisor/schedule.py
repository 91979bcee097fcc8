"""When notice, SIGTERM and SIGKILL are due: pure, times are monotonic seconds.

A pause leaves a short while between notice and SIGTERM, because a program that only looks at its
notice file would otherwise die of the signal before it looks. A cancelled program has nothing to
save and gets both at once.

The worker's own process has SIGTERM first: it may need its helpers to reach the place where it
saves, as a training loop needs the processes that load its data. All others have it when that one
has ended, or at half of the time that is left.
"""

from __future__ import annotations

LEAD_SHARE = 1 / 3
LEAD_MOST_S = 5.0
"""Part of the grace, and the most, that a paused worker has for itself before SIGTERM."""

LEFTOVER_S = 2.0
"""Grace of what a worker leaves running when it ends by itself."""


REST_SHARE = 1 / 2
"""Part of the time between SIGTERM and SIGKILL that the worker's own process has for itself."""

LEADER, REST, ALL, KILL = "leader", "rest", "all", "kill"
"""Who has a signal: SIGTERM, and of ``KILL`` SIGKILL."""


class Stop:
    """One stop of a worker: why, and the instants of its steps."""

    __slots__ = ("_told", "by", "kill_at", "kind", "rest_at", "term_at")

    def __init__(self, kind: str, by: str, grace_s: float, now: float) -> None:
        lead = min(grace_s * LEAD_SHARE, LEAD_MOST_S) if kind == "pause" else 0.0
        self.kind = kind
        self.by = by
        self.term_at = now + lead
        self.kill_at = now + grace_s
        self.rest_at = self._half()
        self._told = ""

    def hasten(self, grace_s: float, now: float) -> None:
        """A second stop may only shorten the time: a cancel after a pause."""
        self.kind = "cancel"
        self.term_at = min(self.term_at, now)
        self.kill_at = min(self.kill_at, now + grace_s)
        self.rest_at = min(self.rest_at, self._half())

    def step(self, now: float, *, leads: bool) -> str | None:
        """Return who has a signal now, None for nobody; each has SIGTERM once.

        Args:
            leads: The worker's own process still runs.
        """
        if now >= self.kill_at:
            return KILL
        if not self._told and now >= self.term_at:
            self._told = LEADER if leads else ALL
            return self._told
        if self._told == LEADER and (not leads or now >= self.rest_at):
            self._told = REST
            return REST
        return None

    def due_at(self) -> float:
        """Return when the next step is due, if the worker's own process goes on until then."""
        return {"": self.term_at, LEADER: self.rest_at}.get(self._told, self.kill_at)

    def _half(self) -> float:
        return self.term_at + (self.kill_at - self.term_at) * REST_SHARE


def exit_code(status: int) -> int:
    """Return a wait status as the shell does: 128 + n after signal n.

    >>> exit_code(7 << 8), exit_code(9)
    (7, 137)
    """
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
