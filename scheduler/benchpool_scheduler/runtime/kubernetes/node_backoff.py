"""Backoff for nodes that rejected pods: pure, with a memory.

One rejected job may be at fault itself, so it tries other nodes. Rejections by several witnesses
count against the node: it is avoided for a while, each time longer. A witness is a job, or a user
if any of the user's jobs could cause the rejection (``pod_status.witness``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

SEVERAL = 3
"""Number of witnesses from which on rejections count against the node."""
REMEMBERED_S = 600.0
"""Time for which a rejection counts, in seconds."""
LONGEST_S = 600.0
"""Longest time for which a node is avoided, in seconds."""


@dataclass(slots=True)
class _Node:
    """State of one node.

    Attributes:
        witnesses: Time of the last rejection by each witness.
        until: End of the time for which the node is avoided, ``length_s`` long; ``text`` is the
            message of the last rejection.
    """

    length_s: float
    witnesses: dict[str, float] = field(default_factory=dict)
    until: float = 0.0
    text: str = ""

    def forget(self, now: float) -> bool:
        """Forget old rejections; return whether anything is left."""
        self.witnesses = {who: at for who, at in self.witnesses.items() if now - at < REMEMBERED_S}
        return bool(self.witnesses) or self.lately(now)

    def lately(self, now: float) -> bool:
        """Return whether the node is avoided, or on probation for an equal time afterwards."""
        return self.until > 0.0 and now < self.until + self.length_s


class NodeBackoff:
    """Nodes that get no pod at the moment; all times in seconds of a monotonic clock.

    >>> refusals = NodeBackoff(60.0)
    >>> for witness in ("a", "a", "b"):
    ...     refusals.add("n", witness, f"n did not take {witness}", 0.0)
    >>> refusals.out(1.0)
    {}
    >>> refusals.add("n", "c", "n did not take c", 2.0)
    >>> refusals.out(61.0), refusals.out(62.0)
    ({'n': 'n did not take c'}, {})

    Args:
        first_s: Seconds for which a node is avoided at first; each repetition doubles the time.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._nodes: dict[str, _Node] = {}

    def add(self, node: str, witness: str, text: str, now: float) -> None:
        """Record that a node rejected a job."""
        known = self._node(node)
        again = known.until <= now and known.lately(now)
        known.forget(now)
        known.witnesses[witness] = now
        if again or len(known.witnesses) >= SEVERAL:
            self.leave_alone(node, text, now)

    def leave_alone(self, node: str, text: str, now: float) -> None:
        """Avoid a node from now on; no effect on a node that is avoided already."""
        known = self._node(node)
        if now < known.until:
            return
        longer = min(LONGEST_S, known.length_s * 2)
        known.length_s = longer if known.lately(now) else self._first_s
        known.until, known.text = now + known.length_s, text
        known.witnesses.clear()

    def out(self, now: float) -> dict[str, str]:
        """Return the avoided nodes with their messages."""
        for name in [name for name, known in self._nodes.items() if not known.forget(now)]:
            del self._nodes[name]
        return {name: known.text for name, known in self._nodes.items() if now < known.until}

    def _node(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node(self._first_s))
