"""Network policies are enforced between pods of the real nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import pods
from benchpool_cluster.cluster import Cluster

pytestmark = pytest.mark.kubernetes
POLICIES = "/apis/networking.k8s.io/v1"


@pytest.fixture
def space(cluster: Cluster) -> Iterator[pods.Space]:
    """Yield a namespace with a server on one node, and a friend and a stranger on both."""
    with pods.space(cluster) as made:
        for name, node in {"server": 1, "friend": 2, "stranger": 2, "neighbour": 1}.items():
            pod = pods.python_pod(name, pods.SERVE, node=f"node-{node}", labels={"role": name})
            made.create("pods", pod)
        for name in ("server", "friend", "stranger", "neighbour"):
            made.wait(name, "Running")
        yield made


def address(space: pods.Space, name: str) -> str:
    """Return a pod's address."""
    found: str = space.cluster.access.get(space.path("pods", name))["status"]["podIP"]
    return found


def policy(name: str, **spec: object) -> pods.Object:
    """Return a network policy."""
    about = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    return about | {"metadata": {"name": name}, "spec": spec}


def test_ingress_policy_admits_only_selected_pods(space: pods.Space) -> None:
    server = address(space, "server")
    assert all(space.comes_to(True, who, server) for who in ("friend", "stranger", "neighbour"))
    peer = {"podSelector": {"matchLabels": {"role": "friend"}}}
    rule = {"from": [peer], "ports": [{"port": 8000}]}
    chosen = {"matchLabels": {"role": "server"}}
    wanted = policy("friends-only", podSelector=chosen, policyTypes=["Ingress"], ingress=[rule])
    space.create("networkpolicies", wanted, POLICIES)
    assert space.comes_to(False, "stranger", server)
    assert space.comes_to(False, "neighbour", server)
    assert space.reaches("friend", server)
    assert space.reaches("stranger", address(space, "friend"))
    space.cluster.access.delete(space.path("networkpolicies", "friends-only", POLICIES))
    assert space.comes_to(True, "stranger", server)


def test_egress_policy_blocks_pods_and_api_server(
    space: pods.Space,
) -> None:
    server = address(space, "server")
    assert space.comes_to(True, "stranger", server)
    assert space.reaches("stranger", "10.97.0.1", 443)
    chosen = {"matchLabels": {"role": "stranger"}}
    silent = policy("silent", podSelector=chosen, policyTypes=["Egress"])
    space.create("networkpolicies", silent, POLICIES)
    assert space.comes_to(False, "stranger", server)
    assert not space.reaches("stranger", "10.97.0.1", 443)
    assert space.reaches("friend", server)
