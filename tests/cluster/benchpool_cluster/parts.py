"""The parts of an installed release as pods: their list, the leader, and nodes without parts.

All of it is read from the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import quote

from benchpool_cluster import kwok_nodes
from benchpool_cluster.processes import NotReady, in_time
from benchpool_cluster.sites import Site, lives
from benchpool_cluster.witness import Object
from benchpool_scheduler.contract import kubernetes as names

CHANGE_S = 90.0
"""Timeout for a change of leader, in seconds.

A standby leads some seconds after the leader's lease has expired, also on a busy machine.
"""


def pods_of(site: Site, part: str) -> list[Object]:
    """Return the living pods of ``hub``, ``proxy`` or ``scheduler``, oldest first."""
    selector = quote(f"app.kubernetes.io/component={part}")
    found = site.access.get(f"/api/v1/namespaces/{site.namespace}/pods?labelSelector={selector}")
    living = [one for one in found["items"] if not one["metadata"].get("deletionTimestamp")]
    return sorted(living, key=lambda one: str(one["metadata"]["creationTimestamp"]))


def path_of(pod: Object) -> str:
    """Return the API path of a pod."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def leader_name(site: Site) -> str:
    """Return the name of the leading pod, or an empty text without a leader."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{site.namespace}/leases/{names.ELECTION_LEASE}"
    spec = (site.access.find(path) or {}).get("spec", {})
    return str(spec.get("holderIdentity") or "").rpartition("-")[0]


def leader(site: Site) -> Object:
    """Return the leading pod.

    Raises:
        NotReady: No pod has led for more than ``CHANGE_S``.
    """
    return _waited_for(site, lambda pod: pod["metadata"]["name"] == leader_name(site))


def leader_after(site: Site, former: Object) -> Object:
    """Wait until a process other than that of the former pod leads, and return its pod."""

    def follows(pod: Object) -> bool:
        again = pod["metadata"]["uid"] == former["metadata"]["uid"]
        return pod["metadata"]["name"] == leader_name(site) and (
            not again or restarts(pod) > restarts(former)
        )

    return _waited_for(site, follows)


def restarts(pod: Object) -> int:
    """Return how often a pod's containers were restarted."""
    return sum(one["restartCount"] for one in pod["status"].get("containerStatuses", []))


def is_replaced(site: Site, former: Object) -> bool:
    """Return whether the only pod of a part is ready and runs as a different process."""
    part = former["metadata"]["labels"]["app.kubernetes.io/component"]
    found = pods_of(site, part)
    return len(found) == 1 and is_ready(found[0]) and lives(found[0]) != lives(former)


def is_ready(pod: Object) -> bool:
    """Return whether a pod reports ready."""
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def wait_whole(site: Site, part: str, count: int = 1, seconds: float = 180) -> None:
    """Wait until this number of pods of a part is ready."""

    def whole() -> bool:
        found = pods_of(site, part)
        return len(found) == count and all(is_ready(one) for one in found)

    if not in_time(whole, seconds):
        states = [one["status"].get("containerStatuses") for one in pods_of(site, part)]
        raise NotReady(f"{count} pods of {part} are not ready in {seconds:g} s: {states}")


def quiet_node(site: Site) -> str:
    """Return the name of a real node without parts of the release, so that it may fail alone."""
    parts = ("hub", "proxy", "scheduler")
    taken = {pod["spec"].get("nodeName") for part in parts for pod in pods_of(site, part)}
    return next(node.name for node in site.cluster.nodes if node.name not in taken)


@contextmanager
def cordoned(site: Site, node: str) -> Iterator[None]:
    """Cordon a node for a while."""
    path = f"{kwok_nodes.NODES}/{node}"
    site.access.patch(path, {"spec": {"unschedulable": True}})
    try:
        yield
    finally:
        site.access.patch(path, {"spec": {"unschedulable": None}})


def _waited_for(site: Site, holds: Callable[[Object], bool]) -> Object:
    found: list[Object] = []

    def look() -> bool:
        found[:] = [pod for pod in pods_of(site, "scheduler") if holds(pod)]
        return bool(found)

    if not in_time(look, CHANGE_S):
        raise NotReady(f"no scheduler leads as expected in {CHANGE_S:g} s: {leader_name(site)}")
    return found[0]
