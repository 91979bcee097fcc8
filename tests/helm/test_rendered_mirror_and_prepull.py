"""Images in air-gapped clusters: every image comes from one mirror and is pulled in advance."""

from __future__ import annotations

import json
from typing import Any

import pytest
from helm_python import HelmError

from benchpool_cluster import chart

PROFILES = [
    {
        "display_name": "R",
        "kubespawner_override": {"image": "quay.io/lab/r:4", "gpus": 1},
        "profile_options": {
            "image": {"choices": {"old": {"kubespawner_override": {"image": "lab/r:3"}}}}
        },
    },
    {"display_name": "plain"},
]
SITE = {
    "images": {
        "mirror": "mirror.lan:5000/all/",
        "tag": "1",
        "scheduler": "localhost/own/scheduler:2",
        "prepull": {"enabled": True, "images": ["docker.io/pytorch/pytorch:2", "lab/r:3"]},
    },
    "notebooks": {"profiles": PROFILES},
}
OURS = {f"mirror.lan:5000/all/benchpool/{part}:1" for part in ("hub", "proxy", "notebook", "job")}


def images_of(value: Any) -> set[str]:
    """Return the images of all containers and the images named in variables."""
    if isinstance(value, list):
        return set().union(*map(images_of, value))
    if not isinstance(value, dict):
        return set()
    named = str(value.get("name", "")).endswith("_IMAGE")
    own = {value["image"]} if isinstance(value.get("image"), str) else set()
    own |= {str(value["value"])} if named and value.get("value") else set()
    return own.union(*map(images_of, value.values()))


def test_every_image_comes_from_mirror() -> None:
    release = chart.render(SITE)
    found = images_of(list(release.objects))
    facts = json.loads(release.the("Secret", "benchpool-hub")["stringData"]["hub.json"])
    assert found == {
        *OURS,
        "mirror.lan:5000/all/own/scheduler:2",
        "mirror.lan:5000/all/lab/r:4",
        "mirror.lan:5000/all/lab/r:3",
        "mirror.lan:5000/all/pytorch/pytorch:2",
    }
    assert facts["image"] == "mirror.lan:5000/all/benchpool/notebook:1"
    first, second = facts["notebooks"]["profiles"]
    assert first["kubespawner_override"] == {"image": "mirror.lan:5000/all/lab/r:4", "gpus": 1}
    old = first["profile_options"]["image"]["choices"]["old"]["kubespawner_override"]
    assert old["image"] == "mirror.lan:5000/all/lab/r:3"
    assert second == {"display_name": "plain"}


def test_image_names_stay_unchanged_without_mirror() -> None:
    release = chart.render({"notebooks": {"profiles": PROFILES}, "images": {"tag": "1"}})
    facts = json.loads(release.the("Secret", "benchpool-hub")["stringData"]["hub.json"])
    assert facts["notebooks"]["profiles"] == PROFILES
    assert facts["image"] == "benchpool/notebook:1"
    assert not [it for it in release.of("DaemonSet") if "prepull" in it["metadata"]["name"]]


def test_gpu_nodes_prepull_each_image_once() -> None:
    release = chart.render(SITE)
    daemon = release.the("DaemonSet", "benchpool-prepull")
    spec = daemon["spec"]["template"]["spec"]
    pulled = [one["image"].removeprefix("mirror.lan:5000/all/") for one in spec["initContainers"]]
    assert sorted(pulled) == sorted(
        ["benchpool/notebook:1", "benchpool/job:1", "lab/r:4", "lab/r:3", "pytorch/pytorch:2"]
    )
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    (stays,) = spec["containers"]
    assert stays["image"] in {one["image"] for one in spec["initContainers"]}


def test_prepull_pod_has_no_rights_and_no_network() -> None:
    release = chart.render(SITE)
    spec = release.the("DaemonSet", "benchpool-prepull")["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    for one in (*spec["initContainers"], *spec["containers"]):
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not any("gpu" in key for key in one["resources"]["requests"])
    policy = release.the("NetworkPolicy", "benchpool-prepull")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert not policy.get("ingress")
    assert not policy.get("egress")


def test_mirror_with_scheme_is_rejected() -> None:
    with pytest.raises(HelmError, match="mirror"):
        chart.render({"images": {"mirror": "https://mirror.lan"}})
