"""The pool without users and with all its hardware working: what could ever run (R22)."""

from __future__ import annotations

from dataclasses import replace

from benchpool_scheduler.core.explain.never import EmptyPool
from benchpool_scheduler.service.benches import bench_reserve
from benchpool_scheduler.service.cluster_state.node_inputs import NodeInputs, nodes
from benchpool_scheduler.service.cluster_state.snapshots import levels, projects
from benchpool_scheduler.service.observed.observations import Observations


def empty_pool(seen: Observations) -> EmptyPool:
    """Return the empty pool of the observed nodes, settings and users."""
    inventory = seen.inventory
    inputs = NodeInputs(
        inventory=inventory,
        kept=bench_reserve.least_laid_out(seen).kept,
        leased=frozenset(),
        clung=frozenset(device.uuid for device in inventory.unusable),
        lends=seen.configuration.build.lend_idle,
    )
    working = [replace(node, ready=True) for node in nodes(inputs)]
    return EmptyPool(working, projects(seen, ()), levels(seen))
