"""No server gets unleased GPUs; every refusal has a message and never ends the Hub."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE
from benchpool_support.kube_hub import KubeHub

pytestmark = pytest.mark.kubernetes

CONFIG = """
# As zero-to-jupyterhub has it: five failures in a row end a JupyterHub 5.
c.Spawner.consecutive_failure_limit = 5

def hook(spawner, pod):
    if spawner.user_options.get("profile") == "by-hook":
        pod.spec.containers[0].resources.limits["nvidia.com/gpu"] = 4
    if spawner.user_options.get("profile") == "ungated":
        pod.spec.scheduling_gates = None
    if spawner.user_options.get("profile") == "moved":
        pod.spec.node_selector = {"pool": "gpu-2"}
    return pod

c.KubeSpawner.modify_pod_hook = hook
GPU = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
c.KubeSpawner.profile_list = [
    {"display_name": "CPU", "slug": "cpu"},
    {"display_name": "One", "slug": "one",
     "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": "1"}}},
    {"display_name": "H100", "slug": "h100",
     "kubespawner_override": {"gpus": 1, "gpu_models": ["H100"]}},
    {"display_name": "Slice", "slug": "slice",
     "kubespawner_override": {"gpus": 1, "gpu_resource": "nvidia.com/mig-1g.10gb"}},
    {"display_name": "Selected", "slug": "selected",
     "kubespawner_override": {"gpus": 1, "node_selector": {"pool": "gpu-2"}}},
    {"display_name": "Extra", "slug": "extra", "kubespawner_override": {
        "gpus": 1, "extra_pod_config": {"nodeSelector": {"pool": "gpu-2"}}}},
    {"display_name": "Nowhere", "slug": "nowhere", "kubespawner_override": {
        "gpus": 1, "extra_pod_config": {"nodeSelector": {"pool": "gpu-9"}}}},
    {"display_name": "Moved", "slug": "moved", "kubespawner_override": {"gpus": 1}},
    {"display_name": "Staff", "slug": "staff", "allowed_groups": ["staff"]},
    {"display_name": "Side", "slug": "side", "kubespawner_override": {
        "extra_containers": [{"name": "side", "image": "x", **GPU}]}},
    {"display_name": "Init", "slug": "init", "kubespawner_override": {
        "init_containers": [{"name": "before", "image": "x", **GPU}]}},
    {"display_name": "Claims", "slug": "claims", "kubespawner_override": {
        "extra_pod_config": {"resourceClaims": [{"name": "gpu"}]}}},
    {"display_name": "Variable", "slug": "variable", "kubespawner_override": {
        "extra_container_config": {"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}}},
    {"display_name": "Pinned", "slug": "pinned", "kubespawner_override": {
        "gpus": 1, "extra_pod_config": {"nodeName": "gpu-1"}}},
    {"display_name": "By hook", "slug": "by-hook"},
    {"display_name": "Ungated", "slug": "ungated", "kubespawner_override": {"gpus": 1}},
]
"""


def refused_start(hub: KubeHub, user: str, **options: Any) -> tuple[int, str]:
    """Request a server that is refused; return status and message.

    A Hub that does not wait for the start first reports a beginning start. The message is then in
    its progress.
    """
    answer = hub.ask_server(user, **options)
    if answer.is_success:
        steps = hub.until(lambda: list(hub.progress(user)))
        assert steps[-1]["failed"]
        return 202, str(steps[-1]["message"])
    return answer.status_code, str(answer.json()["message"])


def pods_of(access: Access, hub: KubeHub, user: str) -> list[dict[str, Any]]:
    found = access.get(f"/api/v1/namespaces/{hub.namespace}/pods")["items"]
    name = "hub.jupyter.org/username"
    return [pod for pod in found if pod["metadata"]["annotations"][name] == user]


def limits(pod: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod["spec"]["containers"][0]["resources"].get("limits", {})
    return {name: value for name, value in found.items() if name.startswith("nvidia.com/")}


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("side", "The container side requests 1 nvidia.com/gpu, but only the notebook"),
        ("init", "The container before requests 1 nvidia.com/gpu"),
        ("claims", "device claims (resourceClaims)"),
        ("variable", "sets NVIDIA_VISIBLE_DEVICES, which can show it other users' GPUs"),
        ("pinned", "names its node (nodeName)"),
        ("by-hook", "The pod requests 4 nvidia.com/gpu, but no GPU was reserved"),
        ("ungated", "lost its scheduling gate benchpool.io/admission"),
        ("nowhere", "can take this server: none of them has the label pool=gpu-9"),
        ("moved", "were changed after its GPUs were reserved"),
        ("none-such", "No such profile: none-such"),
        ("staff", "No such profile: staff"),
    ],
)
def test_unleased_gpu_in_profile_is_rejected(
    hub: KubeHub, access: Access, scheduler: Any, profile: str, words: str
) -> None:
    hub.add_user("eve")
    status, sentence = refused_start(hub, "eve", profile=profile)
    assert words in sentence
    assert status in (400, 409, 202)
    hub.wait_gone("eve")
    hub.until(lambda: scheduler.leases("eve") == [])
    assert pods_of(access, hub, "eve") == []


def test_repeated_quota_refusals_do_not_stop_hub(hub: KubeHub, scheduler: Any) -> None:
    hub.add_user("ben")
    for _ in range(7):
        status, sentence = refused_start(hub, "ben", gpus=3)
        assert "3 GPUs for this server would be more than the build quota of ben: 2" in sentence
        assert status in (409, 202)
        hub.wait_gone("ben")
    assert hub.api("GET", "info").status_code == 200
    assert scheduler.leases("ben") == []


def test_choice_contradicting_profile_is_rejected(hub: KubeHub) -> None:
    hub.add_user("cleo")
    _, sentence = refused_start(hub, "cleo", profile="one", gpus=2)
    assert "This profile has 1 GPU, but 2 were requested" in sentence
    hub.wait_gone("cleo")


def test_concurrent_starts_respect_quota(hub: KubeHub, access: Access, scheduler: Any) -> None:
    hub.add_user("six")
    with ThreadPoolExecutor(6) as people:
        asks = [
            people.submit(hub.ask_server, "six", f"s{i}", profile="one", when_busy="refuse")
            for i in range(6)
        ]
        answers = [ask.result() for ask in asks]
    assert {answer.status_code for answer in answers} <= {201, 202, 409}  # some arrive later
    hub.until(lambda: len(scheduler.leases("six")) == 2)
    names = [f"s{i}" for i in range(6)]
    hub.until(lambda: sum(bool((s := hub.server("six", n)) and s["ready"]) for n in names) == 2)
    hub.until(lambda: sum(hub.server("six", n) is not None for n in names) == 2)
    assert [limits(pod) for pod in pods_of(access, hub, "six")] == [{GPU_RESOURCE: "1"}] * 2
    for name in names:
        hub.stop_server("six", name)
    hub.until(lambda: scheduler.leases("six") == [])


@pytest.mark.parametrize(
    ("profile", "options", "expected", "node"),
    [
        ("one", {}, {GPU_RESOURCE: "1"}, None),
        ("one", {"gpus": 0}, {}, None),
        ("cpu", {"gpus": 2}, {GPU_RESOURCE: "2"}, None),
        ("h100", {}, {GPU_RESOURCE: "1"}, "gpu-2"),
        ("selected", {}, {GPU_RESOURCE: "1"}, "gpu-2"),
        ("extra", {}, {GPU_RESOURCE: "1"}, "gpu-2"),
        ("slice", {}, {"nvidia.com/mig-1g.10gb": "1"}, "gpu-2"),
    ],
)
def test_profiles_set_gpus_models_slices_and_nodes(
    hub: KubeHub,
    access: Access,
    scheduler: Any,
    profile: str,
    options: dict[str, Any],
    expected: dict[str, str],
    node: str | None,
) -> None:
    hub.add_user("pia")
    hub.ask_server("pia", profile=profile, **options)
    hub.wait_ready("pia")
    (pod,) = pods_of(access, hub, "pia")
    assert limits(pod) == expected
    assert node in (None, pod["spec"]["nodeName"])
    assert len(scheduler.leases("pia")) == bool(expected)
    hub.stop_server("pia")
    hub.wait_gone("pia")
    hub.until(lambda: scheduler.leases("pia") == [])


def test_group_profile_is_open_to_members(hub: KubeHub) -> None:
    hub.add_user("stan", groups=["staff"])
    hub.ask_server("stan", profile="staff")
    hub.wait_ready("stan")
    hub.stop_server("stan")
    hub.wait_gone("stan")


def test_cluster_quota_refusal_is_explained(hub: KubeHub, access: Access, scheduler: Any) -> None:
    hub.add_user("quentin")
    path = f"/api/v1/namespaces/{hub.namespace}/resourcequotas"
    spec = {"hard": {f"requests.{GPU_RESOURCE}": "0"}}
    access.create(path, {"metadata": {"name": "fence"}, "spec": spec})
    access.wait(f"{path}/fence", lambda quota: "hard" in quota.get("status", {}))
    try:
        _, sentence = refused_start(hub, "quentin", gpus=1)
        assert "requested 1 nvidia.com/gpu, 0 of 0 are used (quota fence)" in sentence
        hub.wait_gone("quentin")
        hub.until(lambda: scheduler.leases("quentin") == [])
    finally:
        access.delete(f"{path}/fence")
