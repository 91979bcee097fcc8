"""Nodes that turned pods away: pure, but that it remembers.

A job that a node does not take says something about that job, which then tries other nodes. Several
witnesses say something about the node: it is left alone for a while, each time for longer. A
witness is a job, or a user where any job of theirs could bring it about (``pod_status.witness``).
"""

from __future__ import annotations

from dataclasses import dataclass, field

SEVERAL = 3
"""Refusals that at least this many witnesses tell of are the node's own doing."""
REMEMBERED_S = 600.0
"""Refusals that are further apart have nothing to do with each other."""
LONGEST_S = 600.0
"""No node is left alone for longer, however often it refuses."""


@dataclass(slots=True)
class _Node:
    """What is known of one node.

    Attributes:
        witnesses: Those who told of a refusal, with when.
        until: It is left alone until then, ``length_s`` long; ``text`` is what it said.
    """

    length_s: float
    witnesses: dict[str, float] = field(default_factory=dict)
    until: float = 0.0
    text: str = ""

    def forget(self, now: float) -> bool:
        """Forget what is long past; tell whether anything is left."""
        self.witnesses = {who: at for who, at in self.witnesses.items() if now - at < REMEMBERED_S}
        return bool(self.witnesses) or self.lately(now)

    def lately(self, now: float) -> bool:
        """Tell whether it is left alone, or was lately: for as long again it is on probation."""
        return self.until > 0.0 and now < self.until + self.length_s


class NodeBackoff:
    """Which nodes get no pod of ours at the moment; all times in seconds of a steady clock.

    >>> refusals = NodeBackoff(60.0)
    >>> for witness in ("a", "a", "b"):
    ...     refusals.add("n", witness, f"n did not take {witness}", 0.0)
    >>> refusals.out(1.0)
    {}
    >>> refusals.add("n", "c", "n did not take c", 2.0)
    >>> refusals.out(61.0), refusals.out(62.0)
    ({'n': 'n did not take c'}, {})

    Args:
        first_s: Seconds that a node is left alone at first; each next time is twice as long.
    """

    def __init__(self, first_s: float) -> None:
        self._first_s = first_s
        self._nodes: dict[str, _Node] = {}

    def add(self, node: str, witness: str, text: str, now: float) -> None:
        """Note that a node did not take a job."""
        known = self._node(node)
        again = known.until <= now and known.lately(now)
        known.forget(now)
        known.witnesses[witness] = now
        if again or len(known.witnesses) >= SEVERAL:
            self.leave_alone(node, text, now)

    def leave_alone(self, node: str, text: str, now: float) -> None:
        """Leave a node alone from now on; one that is left alone stays so no longer for that."""
        known = self._node(node)
        if now < known.until:
            return
        longer = min(LONGEST_S, known.length_s * 2)
        known.length_s = longer if known.lately(now) else self._first_s
        known.until, known.text = now + known.length_s, text
        known.witnesses.clear()

    def out(self, now: float) -> dict[str, str]:
        """Return the nodes that are left alone, each with what it said."""
        for name in [name for name, known in self._nodes.items() if not known.forget(now)]:
            del self._nodes[name]
        return {name: known.text for name, known in self._nodes.items() if now < known.until}

    def _node(self, name: str) -> _Node:
        return self._nodes.setdefault(name, _Node(self._first_s))
