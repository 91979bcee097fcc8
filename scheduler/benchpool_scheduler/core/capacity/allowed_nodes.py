"""Nodes that a worker may use, whatever is free on them (R1, R13)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchpool_scheduler.core.capacity.bits import set_of
from benchpool_scheduler.core.capacity.node_capacity import NodeCapacity
from benchpool_scheduler.core.jobs.job_info import Requirements
from benchpool_scheduler.core.model import NodeName

MOST_ALLOWED = 4096
"""Limit on cached sets of allowed nodes."""

Where = tuple[tuple[str, ...], bool, frozenset[NodeName] | None, frozenset[NodeName]]
"""Cache key: GPU models, whether part of a GPU is requested, and nodes by name."""


class AllowedNodes:
    """Cached sets of allowed nodes, by the requirements that decide them.

    Args:
        every: All nodes, as a set of their orders.
    """

    def __init__(self, nodes: Sequence[NodeCapacity], every: int) -> None:
        self._nodes = nodes
        self._by_name = {node.node.name: node for node in nodes}
        self._every = every
        self._known: dict[Where, int] = {}

    def nodes_for(self, requirements: Requirements, models: tuple[str, ...] | None = None) -> int:
        """Return the nodes that a worker may use, as a set of their orders.

        Args:
            models: GPU models to use instead of all accepted models.
        """
        models = requirements.models if models is None else models
        if not models and not requirements.part and requirements.anywhere:
            return self._every
        key = (models, requirements.part > 0, requirements.only, requirements.barred)
        if key not in self._known:
            if len(self._known) >= MOST_ALLOWED:
                self._known.clear()
            nodes = (n for n in self._named(requirements) if may_use(n, models, requirements))
            self._known[key] = set_of(n.order for n in nodes)
        return self._known[key]

    def _named(self, requirements: Requirements) -> Iterable[NodeCapacity]:
        """Return the candidate nodes: only the named ones if the job names nodes, else all."""
        if requirements.only is None:
            return self._nodes
        return [self._by_name[name] for name in requirements.only if name in self._by_name]


def may_use(capacity: NodeCapacity, models: tuple[str, ...], requirements: Requirements) -> bool:
    """Return whether a worker may use a node, whatever is free there."""
    node = capacity.node
    return (
        (not models or node.gpu_model in models)
        and (not requirements.part or node.shared)
        and (requirements.anywhere or _named(requirements, node.name))
    )


def _named(requirements: Requirements, name: NodeName) -> bool:
    return name not in requirements.barred and (
        requirements.only is None or name in requirements.only
    )
