"""Pods of the real nodes: logs, network and volumes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchpool_cluster import pods
from benchpool_cluster.cluster import Cluster

pytestmark = pytest.mark.kubernetes


@pytest.fixture
def space(cluster: Cluster) -> Iterator[pods.Space]:
    """Yield a namespace for this test."""
    with pods.space(cluster) as made:
        yield made


def test_pod_logs_and_commands_work(space: pods.Space) -> None:
    space.run(pods.python_pod("worker", pods.WAIT))
    assert space.exec("worker", "python3", "-c", "print(6 * 7)") == "42\n"
    assert space.logs("worker") == "here\n"


def test_pods_reach_each_other_by_headless_service_names(
    space: pods.Space,
) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "gang"},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"app": "gang"},
        },
    }
    space.create("services", service)
    for number in (1, 2):
        pod = pods.python_pod(
            f"w{number}", pods.SERVE, node=f"node-{number}", labels={"app": "gang"}
        )
        pod["spec"] |= {"hostname": f"w{number}", "subdomain": "gang"}
        space.run(pod)
    assert space.comes_to(True, "w1", "w2.gang")
    assert space.comes_to(True, "w2", f"w1.gang.{space.name}.svc.cluster.local")


def test_services_reach_pod_and_api_server(space: pods.Space) -> None:
    space.run(pods.python_pod("server", pods.SERVE, node="node-2", labels={"app": "server"}))
    space.run(pods.python_pod("caller", pods.WAIT, node="node-1"))
    port = {"port": 80, "targetPort": 8000}
    service = {
        "metadata": {"name": "web"},
        "spec": {"selector": {"app": "server"}, "ports": [port]},
    }
    space.create("services", {"apiVersion": "v1", "kind": "Service"} | service)
    assert space.comes_to(True, "caller", "web", 80)
    assert space.comes_to(True, "caller", "kubernetes.default", 443)


def test_volume_is_created_on_node_of_its_pod(space: pods.Space) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "home"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    space.create("persistentvolumeclaims", claim)
    write, read = "open('/home/me/kept', 'w').write('kept')", "print(open('/home/me/kept').read())"
    pod = with_home(pods.python_pod("writer", write, node="node-2"))
    space.run(pod, "Succeeded")
    bound = space.cluster.access.get(space.path("persistentvolumeclaims", "home"))
    assert bound["status"]["phase"] == "Bound"
    again = space.run(with_home(pods.python_pod("reader", read)), "Succeeded")
    assert again["spec"]["nodeName"] == "node-2"
    assert space.logs("reader") == "kept\n"


def with_home(pod: pods.Object) -> pods.Object:
    """Mount the claim ``home`` in a pod."""
    claim = {"claimName": "home"}
    pod["spec"]["volumes"] = [{"name": "home", "persistentVolumeClaim": claim}]
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "home", "mountPath": "/home/me"}]
    return pod
