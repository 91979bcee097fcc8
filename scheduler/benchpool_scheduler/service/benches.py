"""Build GPUs: whose quota is what (R2), how many are kept for benches (R3), and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from benchpool_scheduler.core.build import effective_quota, keep_free
from benchpool_scheduler.runtime import Device, DeviceState
from benchpool_scheduler.service.ledger import Ledger
from benchpool_scheduler.service.site import Site


def quota_of(site: Site, user: str, groups: Mapping[str, int | None]) -> tuple[int, str]:
    """Return a user's build quota and the rule it comes from (R2).

    ``groups`` maps each group of the user to its group property, None without one.
    """
    build = site.configuration.build
    found = effective_quota(
        user,
        groups,
        user_settings=build.users,
        group_settings=build.groups,
        default=build.default,
    )
    return found.quota, found.rule


def quotas(site: Site) -> list[int]:
    """Return the build quotas of all who may start servers: the Hub's users and those named."""
    users = {user.name: user.groups for user in site.directory.users() if user.may_start_servers}
    names = users.keys() | site.configuration.build.users.keys()
    return [quota_of(site, name, users.get(name, {}))[0] for name in names]


def reserve(site: Site) -> int:
    """Return how many GPUs are set aside for benches, held or not (R3)."""
    return _keep(site, leased=0)


def kept(ledger: Ledger, site: Site) -> int:
    """Return how many GPUs train must leave free for benches now: set aside and not leased."""
    return _keep(site, leased=sum(len(lease.gpus) for lease in ledger.leases()))


def _keep(site: Site, leased: int) -> int:
    # What does not fit was refused before, or has come about since: keep what there is.
    build = site.configuration.build
    gpus = build_gpus(site)
    return keep_free(
        quotas(site), reserve=build.reserve, leased=leased, gpus=gpus, oversubscribe=True
    )


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


def refuse_what_does_not_fit(site: Site) -> None:
    """Refuse benches that add up to more than the pool has (R3). Errors: InvalidInput."""
    build = site.configuration.build
    keep_free(
        quotas(site),
        reserve=build.reserve,
        leased=0,
        gpus=build_gpus(site),
        oversubscribe=build.oversubscribe,
    )
