"""Build GPUs: whose quota is what (R2), how many are kept for benches (R3), and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site


def quota_of(site: Site, user: str, groups: Mapping[str, int | None]) -> tuple[int, str]:
    """Return a user's build quota and the rule it comes from (R2).

    ``groups`` maps each group of the user to its group property, None without one.
    """
    build = site.configuration.build
    if user in build.users:
        return build.users[user], f"user {user}"
    properties = {name: quota for name, quota in groups.items() if quota is not None}
    if properties:
        best = max(properties, key=lambda name: (properties[name], name))
        return properties[best], f"property of group {best}"
    settings = {name: build.groups[name] for name in groups if name in build.groups}
    if settings:
        best = max(settings, key=lambda name: (settings[name], name))
        return settings[best], f"group {best}"
    return build.default, "default"


def reserve(site: Site) -> int:
    """Return how many GPUs are set aside for benches, held or not (R3)."""
    build = site.configuration.build
    if build.reserve is not None:
        return build.reserve
    users = {user.name: user.groups for user in site.directory.users() if user.may_start_servers}
    names = users.keys() | build.users.keys()
    return sum(quota_of(site, name, users.get(name, {}))[0] for name in names)


def kept(ledger: Ledger, site: Site) -> int:
    """Return how many GPUs train must leave free for benches now: set aside and not leased."""
    leased = sum(len(lease.gpus) for lease in ledger.leases())
    return max(0, min(reserve(site), build_gpus(site)) - leased)


def build_gpus(site: Site) -> int:
    """Return how many GPUs benches could ever have."""
    return sum(
        len(devices) for devices in by_node(site.devices).values() if serves(site, devices, "build")
    )


def kept_by_node(ledger: Ledger, site: Site) -> Mapping[str, int]:
    """Return how many GPUs each node keeps free, filled node by node."""
    leased = {gpu for lease in ledger.leases() for gpu in lease.gpus}
    left = kept(ledger, site)
    found: dict[str, int] = {}
    for name, devices in by_node(site.devices).items():
        if not serves(site, devices, "build"):
            continue
        usable = [d for d in devices if d.state is DeviceState.USABLE and d.uuid not in leased]
        found[name] = min(left, len(usable))
        left -= found[name]
    return found


def by_node(devices: Sequence[Device]) -> Mapping[str, list[Device]]:
    """Return the GPUs of each node, in the order of their index."""
    found: dict[str, list[Device]] = {}
    for device in sorted(devices, key=lambda d: (d.node, d.index)):
        found.setdefault(device.node, []).append(device)
    return found


def serves(site: Site, devices: Sequence[Device], what: Literal["build", "train"]) -> bool:
    """Tell whether the pool that a node belongs to serves benches or training.

    A node belongs to the first pool whose labels it has; one that no pool wants serves nothing.
    """
    labels = {"gpu.model": devices[0].model, "node": devices[0].node}
    for pool in site.configuration.pools:
        if all(labels.get(key) == value for key, value in pool.nodes.items()):
            return what in pool.serves
    return False


def capacity_fault(site: Site, reserved: int, gpus: int) -> str | None:
    """Return the sentence that refuses a configuration whose benches do not fit (R3)."""
    if reserved <= gpus or site.configuration.build.oversubscribe:
        return None
    return (
        f"The build quotas add up to {reserved} GPUs and the pool has {gpus}; lower them, or set "
        "build.oversubscribe to true if they are never all used at once."
    )
