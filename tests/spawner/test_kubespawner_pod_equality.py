"""For every setting, the pod equals KubeSpawner's pod plus benchpool's additions."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from kubespawner import KubeSpawner
from traitlets.config import Config

from benchpool_scheduler.contract import NodeRequirement, Toleration
from benchpool_scheduler.contract.kubernetes import ADMISSION_GATE, GPU_RESOURCE
from benchpool_scheduler.errors import InvalidInput
from benchpool_spawner.kube import BenchpoolKubeSpawner
from benchpool_spawner.kube_nodes import GPU_TOLERATION, check_nodes, nodes_of
from benchpool_spawner.kube_requests import GpuRequest
from benchpool_spawner.steps import Steps

LEASE_ID = "a" * 26

# As the chart of zero-to-jupyterhub writes it from a values.yaml of some size.
Z2JH = {
    "KubeSpawner": {
        "image": "quay.io/jupyter/base-notebook:2026-10-01",
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": ["registry"],
        "namespace": "lab",
        "scheduler_name": "lab-user-scheduler",
        "priority_class_name": "lab-default-priority",
        "uid": 1000,
        "fs_gid": 100,
        "allow_privilege_escalation": False,
        "service_account": "notebooks",
        "node_selector": {"hub.jupyter.org/node-purpose": "user"},
        "tolerations": [
            {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user"},
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        ],
        "node_affinity_preferred": [
            {"weight": 100, "preference": {"matchExpressions": [
                {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}]}}
        ],
        "node_affinity_required": [
            {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["slow"]}]}
        ],
        "extra_labels": {"hub.jupyter.org/network-access-hub": "true", "team": "vision"},
        "extra_annotations": {"cost-centre": "4711"},
        "environment": {"GREETING": "hello {username}"},
        "cpu_guarantee": 0.5,
        "mem_guarantee": "2G",
        "mem_limit": "8G",
        "extra_resource_limits": {"example.com/fpga": "1"},
        "storage_pvc_ensure": True,
        "storage_capacity": "10Gi",
        "pvc_name_template": "claim-{user_server}",
        "volumes": {
            "home": {"name": "home", "persistentVolumeClaim": {"claimName": "{pvc_name}"}},
            "shm": {"name": "shm", "emptyDir": {"medium": "Memory"}},
        },
        "volume_mounts": {"home": {"name": "home", "mountPath": "/home/jovyan"}},
        "init_containers": [
            {"name": "block-cloud-metadata", "image": "iptables", "securityContext": {}}
        ],
        "extra_containers": [{"name": "sidecar", "image": "logs"}],
        "extra_container_config": {"envFrom": [{"configMapRef": {"name": "settings"}}]},
        "extra_pod_config": {"runtimeClassName": "nvidia", "enableServiceLinks": False},
        "lifecycle_hooks": {"postStart": {"exec": {"command": ["true"]}}},
        "profile_list": [
            {"display_name": "Small", "slug": "small", "default": True},
            {"display_name": "Large", "slug": "large", "kubespawner_override": {
                "mem_limit": "32G", "extra_labels": {"size": "large"}}},
        ],
    }
}  # fmt: skip


async def rendered(kind: type[KubeSpawner], profile: str, **leased: Any) -> dict[str, Any]:
    """Return a spawner's pod in the form sent to the API server."""
    spawner = kind(_mock=True, config=Config(Z2JH))
    spawner.user.groups = []
    spawner.user.escaped_name = "mock-40name"
    spawner.user.settings = {"allow_named_servers": True}
    spawner.user_options = {"profile": profile}
    for name, value in leased.items():
        setattr(spawner, name, value)
    await spawner.load_user_options()
    pod = await spawner.get_pod_manifest()
    sent: dict[str, Any] = spawner.api.api_client.sanitize_for_serialization(pod)
    return sent


def without_ours(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod without benchpool's additions."""
    about, spec = pod["metadata"], pod["spec"]
    for part in ("labels", "annotations"):
        about[part] = {k: v for k, v in about[part].items() if not k.startswith("benchpool.io/")}
    spec.pop("schedulingGates", None)
    spec["tolerations"] = [one for one in spec["tolerations"] if one != GPU_TOLERATION]
    for container in spec["containers"]:
        limits = container.get("resources", {}).get("limits", {})
        limits.pop(GPU_RESOURCE, None)
        ours = ("CUDA_", "BENCHPOOL_")
        if "env" in container:
            theirs = [one for one in container["env"] if not one["name"].startswith(ours)]
            container["env"] = theirs
    return pod


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize(
    ("modes", "template", "home"),
    [
        (["ReadWriteOnce"], "home-{username}", "own"),
        (["ReadWriteMany"], "home-{username}", "shared"),
        # The right one of several homes is unknown, so the job carries its files.
        (["ReadWriteMany"], "claim-{user_server}", "own"),
    ],
)
async def test_server_environment_names_image_and_home(
    modes: list[str], template: str, home: str
) -> None:
    facts = {
        "storage_access_modes": modes,
        "storage_pvc_ensure": True,
        "pvc_name_template": template,
    }
    pod = await rendered(BenchpoolKubeSpawner, "small", **facts)
    container = pod["spec"]["containers"][0]
    env = {one["name"]: one.get("value") for one in container["env"]}
    assert (env["BENCHPOOL_IMAGE"], env["BENCHPOOL_HOME"]) == (container["image"], home)


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("profile", ["small", "large"])
@pytest.mark.parametrize("gpus", [0, 2])
async def test_pod_matches_kubespawner_plus_additions(profile: str, gpus: int) -> None:
    lease = {"_lease_id": LEASE_ID, "_lease_gpus": ("n/0", "n/1"), "_gpu_request": GpuRequest(2)}
    theirs = await rendered(KubeSpawner, profile)
    ours = await rendered(BenchpoolKubeSpawner, profile, **(lease if gpus else {}))
    gates = ours["spec"].get("schedulingGates")
    assert gates == ([{"name": ADMISSION_GATE}] if gpus else None)
    assert ours["spec"]["tolerations"].count(GPU_TOLERATION) == (1 if gpus else 0)
    notebook = ours["spec"]["containers"][0]
    assert notebook["resources"]["limits"].get(GPU_RESOURCE) == (2 if gpus else None)
    assert without_ours(ours) == theirs


@pytest.mark.usefixtures("kubeconfig")
async def test_lease_request_has_home_nodes_and_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    spawner = BenchpoolKubeSpawner(_mock=True, config=Config(Z2JH))
    what, more = await asked_of(spawner, monkeypatch)
    assert what == (1, (), None)
    assert more["claim"] == spawner.pvc_name
    assert more["claim"].startswith("claim-mock")
    assert (more["namespace"], more["resource"]) == ("lab", GPU_RESOURCE)
    assert more["node_selector"] == {"hub.jupyter.org/node-purpose": "user"}
    assert more["node_affinity"] == [[NodeRequirement("disk", "NotIn", ["slow"])]]
    assert more["tolerations"] == [
        Toleration("hub.jupyter.org/dedicated", "Equal", "user"),
        Toleration(GPU_RESOURCE, "Exists", effect="NoSchedule"),
        Toleration(GPU_RESOURCE, "Exists"),
    ]


async def asked_of(
    spawner: BenchpoolKubeSpawner, monkeypatch: pytest.MonkeyPatch
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the lease request of a start with one GPU."""
    spawner.user.groups, spawner.user.escaped_name = [], "mock-40name"
    spawner.user.settings = {}
    spawner.user_options = {"profile": "small", "gpus": 1}
    asked: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    async def note(*what: Any, **more: Any) -> None:
        asked.append((what, more))

    monkeypatch.setattr(spawner, "_reserve_for", note)
    await spawner.run_pre_spawn_hook()
    (found,) = asked
    return found


ZONED = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": ZONED}}
EXTRA: dict[str, Any] = {
    "node_selector": {"pool": "big"},
    "affinity": {"nodeAffinity": REQUIRED},
    "tolerations": [{"key": "big", "operator": "Exists"}],
}


@pytest.mark.usefixtures("kubeconfig")
async def test_lease_request_includes_extra_pod_config(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spawner = BenchpoolKubeSpawner(_mock=True, config=Config(Z2JH), extra_pod_config=EXTRA)
    _, more = await asked_of(spawner, monkeypatch)
    assert more["node_selector"] == {"pool": "big"}
    assert more["node_affinity"] == [[NodeRequirement("zone", "In", ["a"])]]
    assert more["tolerations"] == [Toleration("big", "Exists"), Toleration(GPU_RESOURCE, "Exists")]
    for name, value in {
        "_lease_id": LEASE_ID,
        "_lease_gpus": ("n/0",),
        "_gpu_request": GpuRequest(1),
    }.items():
        setattr(spawner, name, value)
    sent = spawner.api.api_client.sanitize_for_serialization(await spawner.get_pod_manifest())
    nodes = nodes_of(sent["spec"], leased=True)
    assert nodes.as_request() == {name: more[name] for name in nodes.as_request()}


@pytest.mark.parametrize(
    "change",
    [
        {"nodeSelector": {"pool": "other"}},
        {"affinity": {"nodeAffinity": REQUIRED}},
        {"tolerations": []},
    ],
)
def test_pod_with_wider_node_choice_is_rejected(change: dict[str, Any]) -> None:
    borne = [{"key": "big", "operator": "Exists"}]
    spec: dict[str, Any] = {"nodeSelector": {"pool": "big"}, "tolerations": borne}
    nodes = nodes_of(spec, leased=True)
    check_nodes(spec | {"tolerations": [*borne, {"operator": "Exists"}]}, nodes)
    with pytest.raises(InvalidInput, match=r"modify_pod_hook\?\)\. Set them by node_selector"):
        check_nodes(spec | change, nodes)


@pytest.mark.usefixtures("kubeconfig")
async def test_pre_spawn_hook_changes_leased_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def hook(spawner: Any) -> None:
        await asyncio.sleep(0)
        spawner.extra_resource_limits = {GPU_RESOURCE: 3}

    spawner = BenchpoolKubeSpawner(_mock=True, config=Config(Z2JH), pre_spawn_hook=hook)
    spawner.user.groups, spawner.user.escaped_name = [], "mock-40name"
    spawner.user_options = {}
    asked: list[int] = []

    async def note(gpus: int, *rest: Any, **more: Any) -> None:
        asked.append(gpus)

    monkeypatch.setattr(spawner, "_reserve_for", note)
    await spawner.run_pre_spawn_hook()
    assert asked == [3]


@pytest.mark.usefixtures("kubeconfig")
async def test_slow_spawn_message_appears_at_threshold() -> None:
    spawner = BenchpoolKubeSpawner(
        _mock=True, slow_spawn_message_threshold=10, slow_spawn_message="still {seconds} s"
    )
    spawner.steps = Steps()
    last = 0.0
    for elapsed in (5.0, 11.0, 12.0, 17.0):
        last = spawner.ask_for_patience(elapsed, last)
    follow = spawner.steps.follow()
    assert [(await anext(follow)).text for _ in range(2)] == ["still 11 s", "still 17 s"]


@pytest.mark.usefixtures("kubeconfig")
async def test_form_and_query_give_same_options() -> None:
    spawner = BenchpoolKubeSpawner(_mock=True, config=Config(Z2JH))
    data = {
        "profile": ["large"],
        "profile-option-large--image": ["a"],
        "gpus": ["2"],
        "when_busy": ["refuse"],
        "_xsrf": ["x"],
    }
    expected = {"profile": "large", "image": "a", "gpus": 2, "when_busy": "refuse"}
    assert spawner.options_from_form(data) == expected
    assert spawner.options_from_query(data) == expected
    assert spawner.options_from_form({"profile": ["large"], "gpus": [""]}) == {"profile": "large"}


@pytest.mark.usefixtures("kubeconfig")
async def test_form_shows_open_profiles_and_quota() -> None:
    spawner = BenchpoolKubeSpawner(
        _mock=True,
        config=Config(Z2JH),
        scheduler_url="http://127.0.0.1:9/services/benchpool",
        scheduler_token="t",
    )
    spawner.profile_list = [
        *spawner.profile_list,
        {"display_name": "Only staff", "allowed_groups": ["staff"]},
    ]
    spawner.user.groups = []
    spawner.user_options = {}
    spawner.user.orm_user = SimpleNamespace(orm_spawners={})
    spawner.orm_spawner = SimpleNamespace(user_options={}, server=None)
    html = await spawner.options_form(spawner)
    assert "Large" in html
    assert "Only staff" not in html
    assert "as in the profile above" in html
    assert "The scheduler does not answer" in html
