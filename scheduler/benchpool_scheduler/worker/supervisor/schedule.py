"""Times of notice, SIGTERM and SIGKILL: pure, in monotonic seconds.

A pause leaves a short time between notice and SIGTERM. Otherwise the signal would end a program
that only polls its notice file. A cancelled program has nothing to save and gets both at once.

The worker's own process gets SIGTERM first. It may need its helpers to reach the point where it
saves: a training loop needs its data-loading processes. The others get SIGTERM when the own process
has ended, or after half of the remaining time.
"""

from __future__ import annotations

LEAD_SHARE = 1 / 3
LEAD_MOST_S = 5.0
"""Share of the grace period between notice and SIGTERM of a pause, and its maximum in seconds."""

LEFTOVER_S = 2.0
"""Grace period of processes that a worker leaves running when it ends by itself, in seconds."""


REST_SHARE = 1 / 2
"""Share of the time between SIGTERM and SIGKILL before the other processes get SIGTERM."""

LEADER, REST, ALL, KILL = "leader", "rest", "all", "kill"
"""Receivers of SIGTERM; ``KILL`` sends SIGKILL to all."""


class Stop:
    """One stop of a worker: its cause, and the times of its steps."""

    __slots__ = ("_sent", "by", "kill_at", "kind", "rest_at", "term_at")

    def __init__(self, kind: str, by: str, grace_s: float, now: float) -> None:
        lead = min(grace_s * LEAD_SHARE, LEAD_MOST_S) if kind == "pause" else 0.0
        self.kind = kind
        self.by = by
        self.term_at = now + lead
        self.kill_at = now + grace_s
        self.rest_at = self._half()
        self._sent = ""

    def hasten(self, grace_s: float, now: float) -> None:
        """Shorten the times for a second stop, such as a cancel after a pause."""
        self.kind = "cancel"
        self.term_at = min(self.term_at, now)
        self.kill_at = min(self.kill_at, now + grace_s)
        self.rest_at = min(self.rest_at, self._half())

    def step(self, now: float, *, leads: bool) -> str | None:
        """Return the receivers of a signal now, or None; each gets SIGTERM once.

        Args:
            leads: The worker's own process still runs.
        """
        if now >= self.kill_at:
            return KILL
        if not self._sent and now >= self.term_at:
            self._sent = LEADER if leads else ALL
            return self._sent
        if self._sent == LEADER and (not leads or now >= self.rest_at):
            self._sent = REST
            return REST
        return None

    def due_at(self) -> float:
        """Return the time of the next step, if the worker's own process runs until then."""
        return {"": self.term_at, LEADER: self.rest_at}.get(self._sent, self.kill_at)

    def _half(self) -> float:
        return self.term_at + (self.kill_at - self.term_at) * REST_SHARE


def exit_code(status: int) -> int:
    """Return the shell's exit code for a wait status: 128 + n after signal n.

    >>> exit_code(7 << 8), exit_code(9)
    (7, 137)
    """
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8
