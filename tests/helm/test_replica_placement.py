"""The scheduler's replicas share one volume; its access mode decides their placement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helm_python import HelmError

from benchpool_cluster import chart
from benchpool_cluster.chart import Rendered, Site
from benchpool_support.pods import KWOK
from benchpool_support.waiting import until

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
OF_SITE = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE]}}}


def with_volume(mode: str, **scheduler: Any) -> Rendered:
    return chart.render({"scheduler": {"storage": {"accessMode": mode}, **scheduler}})


def affinity(rendered: Rendered) -> dict[str, Any]:
    spec = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    found: dict[str, Any] = spec["affinity"]
    return found


def budgets(rendered: Rendered) -> list[str]:
    return [one["metadata"]["name"] for one in rendered.of("PodDisruptionBudget")]


def test_replicas_on_single_node_volume_prefer_one_node() -> None:
    (term,) = affinity(chart.render())["podAffinity"][PREFERRED]
    together = term["podAffinityTerm"]
    assert together["topologyKey"] == "kubernetes.io/hostname"
    labels = chart.render().the("Deployment", "benchpool-scheduler")["spec"]["template"]["metadata"]
    assert together["labelSelector"]["matchLabels"].items() <= labels["labels"].items()


def test_replicas_on_one_node_have_no_disruption_budget() -> None:
    assert budgets(with_volume("ReadWriteOnce")) == []
    assert budgets(with_volume("ReadWriteMany")) == ["benchpool-scheduler"]


def test_replicas_on_shared_volume_prefer_different_nodes() -> None:
    found = affinity(with_volume("ReadWriteMany"))
    assert list(found) == ["podAntiAffinity"]
    assert list(found["podAntiAffinity"]) == [PREFERRED]


def test_single_replica_has_no_pod_affinity() -> None:
    for mode in ("ReadWriteOnce", "ReadWriteOncePod"):
        rendered = with_volume(mode, replicas=1)
        assert "podAffinity" not in affinity(rendered)
        assert budgets(rendered) == []


def test_site_affinity_is_merged() -> None:
    found = affinity(with_volume("ReadWriteOnce", affinity=OF_SITE))
    assert found["nodeAffinity"] == OF_SITE["nodeAffinity"]
    assert len(found["podAffinity"][PREFERRED]) == 1
    found = affinity(with_volume("ReadWriteMany", affinity=OF_SITE))
    assert found["nodeAffinity"] == OF_SITE["nodeAffinity"]
    other = {"weight": 1, "podAffinityTerm": {"topologyKey": "rack"}}
    of_site = {"podAntiAffinity": {PREFERRED: [other]}}
    both = affinity(with_volume("ReadWriteMany", affinity=of_site))["podAntiAffinity"][PREFERRED]
    assert both[0] == other
    assert len(both) == 2


def test_two_replicas_on_single_pod_volume_are_rejected() -> None:
    with pytest.raises(HelmError, match=r"scheduler\.replicas is 2\. Set replicas to 1, or access"):
        with_volume("ReadWriteOncePod")


def test_site_claim_replaces_own_claim() -> None:
    rendered = with_volume("ReadWriteMany")
    assert "benchpool-scheduler" in [
        one["metadata"]["name"] for one in rendered.of("PersistentVolumeClaim")
    ]
    storage = {"accessMode": "ReadWriteMany", "claim": "shared"}
    rendered = chart.render({"scheduler": {"storage": storage}})
    assert "benchpool-scheduler" not in [
        one["metadata"]["name"] for one in rendered.of("PersistentVolumeClaim")
    ]
    spec = rendered.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    claims = [one.get("persistentVolumeClaim") for one in spec["volumes"]]
    assert {"claimName": "shared"} in claims


# ----------------------------------------------------------------- on a cluster


REPLICAS = 4


@pytest.fixture
def replicas(site: Site) -> Iterator[str]:
    """Yield the scheduler's deployment with a volume for one node; kwok simulates its pods."""
    # More replicas than a usual site, so that a spread over nodes would show.
    rendered = chart.render({"scheduler": {"tolerations": [KWOK], "replicas": REPLICAS}})
    name, access = "benchpool-scheduler", site.access
    claim = f"/api/v1/namespaces/benchpool/persistentvolumeclaims/{name}"
    deployment = f"/apis/apps/v1/namespaces/benchpool/deployments/{name}"
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "of-the-scheduler"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "20Gi"},
            "hostPath": {"path": "/nowhere"},
        },
    }
    access.create("/api/v1/persistentvolumes", volume)
    access.apply(claim, rendered.the("PersistentVolumeClaim", name))
    for one in rendered.of("PodDisruptionBudget"):
        access.apply(f"/apis/policy/v1/namespaces/benchpool/poddisruptionbudgets/{name}", one)
    access.apply(deployment, rendered.the("Deployment", name))
    yield "/api/v1/namespaces/benchpool/pods"
    access.delete(deployment)
    access.delete(claim)
    access.delete("/api/v1/persistentvolumes/of-the-scheduler")
    for node in ("gpu-1", "gpu-2"):
        access.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": None}})


def placed(site: Site, pods: str) -> dict[str, str]:
    """Return the node of each replica that is not being deleted, by name."""
    found = site.access.get(f"{pods}?labelSelector=app.kubernetes.io/component=scheduler")
    return {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "")
        for pod in found["items"]
        if "deletionTimestamp" not in pod["metadata"]
    }


@pytest.mark.kubernetes
def test_drain_moves_all_replicas_to_another_node(site: Site, replicas: str) -> None:
    def all_on(nodes: set[str]) -> bool:
        found = list(placed(site, replicas).values())
        return len(found) == REPLICAS and len(set(found)) == 1 and set(found) <= nodes

    until(lambda: all_on({"gpu-1", "gpu-2"}), lambda: placed(site, replicas))
    before = placed(site, replicas)
    (node,) = set(before.values())
    site.access.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": True}})
    for name in before:
        about = {"metadata": {"name": name}}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", **about}
        assert site.access.call("POST", f"{replicas}/{name}/eviction", body).is_success
    (other,) = {"gpu-1", "gpu-2"} - {node}
    until(lambda: all_on({other}), lambda: placed(site, replicas))
