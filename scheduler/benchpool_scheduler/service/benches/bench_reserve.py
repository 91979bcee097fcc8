"""Build quotas of users (R2) and the number of GPUs reserved for benches (R3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from benchpool_scheduler.core.benches.quotas import keep_free
from benchpool_scheduler.core.benches.reserve import BenchReserve, lay_out
from benchpool_scheduler.runtime import DeviceState
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed import users
from benchpool_scheduler.service.observed.inventory import WHOLE
from benchpool_scheduler.service.observed.observations import Observations


def quota_of(seen: Observations, user: str, groups: Mapping[str, int | None]) -> tuple[int, str]:
    """Return a user's build quota and the rule it comes from (R2).

    ``groups`` maps each group of the user to its group property, None without one.
    """
    found = users.quota_of(seen.configuration, user, groups)
    return found.quota, found.rule


def lent_by(seen: Observations, user: str, held: Collection[str]) -> int:
    """Return how many GPUs the user's parked benches lend. They count against the quota (R2).

    Args:
        held: Leases that hold their GPUs, including that of a bench that is just being parked.
    """
    return sum(it.user == user and it.lease not in held for it in seen.parked.values())


def reserve(seen: Observations) -> int:
    """Return how many GPUs are set aside for benches, held or not (R3)."""
    # A quota sum that does not fit was refused before, or arose since. Reserve what exists.
    return keep_free(
        [seen.users.quota_sum],
        reserve=seen.configuration.build.reserve,
        leased=0,
        gpus=seen.inventory.build_gpus,
        oversubscribe=True,
    )


def kept(ledger: Ledger, seen: Observations) -> int:
    """Return how many GPUs training must leave free for benches now: reserved and not leased.

    A slice that a bench holds counts as one GPU (R1).
    """
    return max(0, reserve(seen) - len(ledger.leased))


def by_node(ledger: Ledger, seen: Observations) -> BenchReserve:
    """Return the nodes on which GPUs are reserved for benches, and which of them are reclaimed."""
    inventory = seen.inventory
    return lay_out(
        kept(ledger, seen),
        (name for name in inventory.nodes if name in inventory.build),
        lambda name: _usable(ledger, seen, name),
        seen.called,
        lends=seen.configuration.build.lend_idle,
    )


def least_laid_out(seen: Observations) -> BenchReserve:
    """Return the minimum of GPUs that training must leave free, by node, if all GPUs work.

    Each slice that a bench may hold replaces one reserved GPU.
    """
    inventory = seen.inventory
    serving = [name for name in inventory.nodes if name in inventory.build]
    whole = {name: sum(d.resource == WHOLE for d in inventory.nodes[name]) for name in serving}
    slices = sum(len(inventory.nodes[name]) - whole[name] for name in serving)
    return lay_out(
        max(0, reserve(seen) - slices),
        serving,
        whole.__getitem__,
        {},
        lends=seen.configuration.build.lend_idle,
    )


def _usable(ledger: Ledger, seen: Observations, node: str) -> int:
    """Return how many whole GPUs of a node work and are not leased. Slices are not reserved.

    A node that takes no starts counts as 0: benches start on other nodes.
    """
    if node in seen.closed:
        return 0
    devices = (d for d in seen.inventory.nodes.get(node, ()) if d.resource == WHOLE)
    return sum(d.state is DeviceState.USABLE and d.uuid not in ledger.leased for d in devices)


def guaranteed_gpus(seen: Observations) -> int:
    """Return how many GPUs training has regardless of benches: all but the reserve (R3)."""
    return max(0, seen.inventory.train_gpus - reserve(seen))


@dataclass(frozen=True, slots=True)
class Capacity:
    """Maximum capacity for training, whatever is in use now.

    Attributes:
        largest_node: Largest number of GPUs of one node. ``total``: GPUs of all nodes, without the
            reserve for benches (R3).
    """

    largest_node: int
    total: int


def capacity(seen: Observations, *, preemptible: bool = True) -> Capacity:
    """Return the capacity for training if nothing were in use (R3, R22).

    Args:
        preemptible: For jobs that can be paused. Benches lend them their unused GPUs.
    """
    inventory = seen.inventory
    lent = preemptible and seen.configuration.build.lend_idle
    total = inventory.train_gpus if lent else guaranteed_gpus(seen)
    return Capacity(largest_node=min(inventory.largest_train_node, total), total=total)
