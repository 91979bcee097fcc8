"""Manifests for the API server: bounded, deterministic for a launch, and restricted."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime import Launch, SnapshotEntry, WorkerId
from benchpool_scheduler.runtime.kubernetes import agent_config, manifests
from benchpool_scheduler.runtime.kubernetes.agent import environment
from benchpool_scheduler.runtime.kubernetes.agent.config import AgentConfig
from benchpool_scheduler.runtime.kubernetes.cluster_views import keep_pod
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawPod
from benchpool_scheduler.runtime.kubernetes.workload_hints import GangHints
from benchpool_scheduler.runtime.local import environment as local
from benchpool_scheduler.worker import rendezvous
from benchpool_scheduler.worker.folders import Folders
from benchpool_support.pods import launches, settings_for

SETTINGS = settings_for("jobs")


def job_of(launch: Launch) -> dict[str, Any]:
    """Return the Job of a launch."""
    places = [manifests.placement(node, launch.gpus) for node in launch.nodes]
    return manifests.job(launch, places, SETTINGS, 7)


def order_of(launch: Launch, index: int = 0) -> AgentConfig:
    """Return the configuration that an agent reads."""
    packed = agent_config.pack(agent_config.agent_config(launch, SETTINGS))
    return AgentConfig(gzip.decompress(packed), index, "token")


def test_worker_requests_assigned_resources() -> None:
    (launch,) = launches([("n0", (0, 1))], cpus=6.5, memory_gib=24.0, image="susan@sha256:1")
    (container,) = job_of(launch)["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "susan@sha256:1"
    assert container["resources"] == {
        "requests": {"cpu": "6500m", "memory": "24576Mi", "nvidia.com/gpu": "2"},
        "limits": {"memory": "24576Mi", "nvidia.com/gpu": "2"},
    }


def test_mig_slice_is_requested_by_resource_name() -> None:
    (launch,) = launches(
        [("n0", ())],
    )
    sliced = Launch(launch.worker, ("true",), {}, ("n0/mig-1g.10gb/3",), None, nodes=("n0",))
    (container,) = job_of(sliced)["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/mig-1g.10gb": "1"}


def test_home_volume_is_mounted_and_holds_checkpoint() -> None:
    (launch,) = launches(
        [("n0", (0,))],
        claim="home-susan",
        claim_path="/home/susan",
        working_dir=Path("/home/susan/work"),
        output_dir=Path("/home/susan/work/out"),
    )
    spec = job_of(launch)["spec"]["template"]["spec"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": "home-susan"}} in spec["volumes"]
    order = order_of(launch)
    assert order.home == "/home/susan/work/out"
    assert order.cwd == "/home/susan/work"
    assert order.checkpoint.startswith("/home/susan/.benchpool/jobs/")
    assert not order.carries


@given(st.text(max_size=400), st.text(max_size=400))
def test_user_and_project_names_change_only_annotations(user: str, project: str) -> None:
    own = {"BENCHPOOL_USER": user, "BENCHPOOL_PROJECT": project}
    plain = Launch(WorkerId("j" * 26, 1, 0), ("true",), {}, ("n0/0",), None, nodes=("n0",))
    named = Launch(WorkerId("j" * 26, 1, 0), ("true",), own, ("n0/0",), None, nodes=("n0",))
    expected, found = job_of(plain), job_of(named)
    for body in (expected, found):
        for part in (body, body["spec"]["template"]):
            notes = part["metadata"]["annotations"]
            assert all(len(text) <= manifests.ANNOTATION_BYTES for text in notes.values())
            del notes[names.USER], notes[names.PROJECT]
    assert found == expected


@given(
    st.lists(st.tuples(st.from_regex(r"[a-z][a-z0-9.-]{0,20}", fullmatch=True), st.integers(0, 9)))
)
def test_placements_read_back_as_they_were_written(places: list[tuple[str, int]]) -> None:
    given_ = [(node, tuple(f"{node}/{i}" for i in range(count))) for node, count in places]
    text = ";".join(manifests.placement(node, slots) for node, slots in given_)
    assert manifests.placements(text) == given_


def test_too_many_files_are_rejected_with_reason() -> None:
    files = tuple(
        SnapshotEntry(f"file-{number}", hashlib.sha256(b"%d" % number).hexdigest())
        for number in range(60_000)
    )
    (launch,) = launches([("n0", (0,))], files=files)
    with pytest.raises(InvalidInput, match="the limit of a pod is"):
        agent_config.pack(agent_config.agent_config(launch, SETTINGS))


@pytest.mark.parametrize("gpus", [(), (0,), (0, 1, 2)])
@pytest.mark.parametrize("workers", [1, 3])
def test_gang_environment_matches_workstation(
    gpus: tuple[int, ...], workers: int, tmp_path: Path
) -> None:
    gang = launches([("n0", gpus)] * workers)
    for launch in gang:
        there = local.environment(launch, Folders(tmp_path))
        here = environment.environment(order_of(gang[0], launch.worker.worker), {})
        words = rendezvous.NAMES - {"MASTER_ADDR", "PET_MASTER_ADDR"}
        assert {w: here.get(w) for w in words} == {w: there.get(w) for w in words}
        job = names.attempt_name(launch.worker.job, 1)
        expected = "127.0.0.1" if workers == 1 else f"{job}-0.{job}.jobs.svc"
        assert here["MASTER_ADDR"] == here["PET_MASTER_ADDR"] == expected


def test_gang_environment_marks_separate_checkpoint_folders() -> None:
    on_two = [("n0", (0,)), ("n1", (0,))]
    for gang, apart in (
        (launches(on_two), True),
        (launches(on_two, claim="home-susan", claim_path="/home/susan"), False),
        (launches(on_two[:1]), False),
    ):
        found = environment.environment(order_of(gang[0]), {})
        assert ("BENCHPOOL_CHECKPOINT_SHARED" in found) == apart


def test_only_image_variables_reach_command() -> None:
    (launch,) = launches([("n0", (0,))])
    image = {
        "PATH": "/opt/conda/bin",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "JUPYTERHUB_API_TOKEN": "secret",
        "JOB_COMPLETION_INDEX": "0",
        "NVIDIA_VISIBLE_DEVICES": "GPU-7",
    }
    found = environment.environment(order_of(launch), image)
    assert found["PATH"] == "/opt/conda/bin"
    assert found["HOME"] == "/benchpool"
    assert (
        environment.environment(order_of(launch), {"HOME": "/home/jovyan"})["HOME"] != "/benchpool"
    )
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-7"
    assert not {"KUBERNETES_SERVICE_HOST", "JUPYTERHUB_API_TOKEN", "JOB_COMPLETION_INDEX"} & set(
        found
    )


def test_secret_contains_config_and_worker_tokens() -> None:
    gang = launches([("n0", (0,)), ("n1", (0,))])
    packed = agent_config.pack(agent_config.agent_config(gang[0], SETTINGS))
    body = manifests.secret(gang[0], "uid", packed, {0: "zero", 1: "one"}, 7)
    assert set(body["data"]) == {"order", "token-0", "token-1"}
    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert "zero" not in json.dumps(job_of(gang[0]))


# ------------------------------------------------------------------ gang scheduling hints


def test_manifest_has_no_scheduling_group_by_default() -> None:
    job = job_of(launches([("n0", (0,)), ("n1", (0,))])[0])["spec"]
    assert "scheduling" not in job
    assert "schedulingGroup" not in job["template"]["spec"]


@pytest.mark.parametrize(("workers", "has_policy"), [(1, False), (2, True)])
def test_gang_hints_set_scheduling_policy(workers: int, has_policy: bool) -> None:
    launch, *_ = launches([(f"n{index}", (0,)) for index in range(workers)])
    places = [manifests.placement(node, launch.gpus) for node in launch.nodes]
    settings = settings_for("jobs", workload_hints=GangHints())
    job = manifests.job(launch, places, settings, 7)["spec"]
    wanted = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "disruptionMode": {"all": {}},
    }
    assert job.get("scheduling") == (wanted if has_policy else None)


def test_pod_in_pod_group_is_read_and_opened() -> None:
    plain: dict[str, Any] = {
        "metadata": {
            "name": "bp-x-1-0",
            "namespace": "jobs",
            "uid": "u",
            "resourceVersion": "5",
            "labels": {names.ROLE: names.ROLE_WORKER, names.JOB: "x", names.ATTEMPT: "1"},
            "ownerReferences": [{"kind": "Job", "name": "bp-x-1", "controller": True}],
        },
        "spec": {"schedulingGates": [{"name": names.ADMISSION_GATE}]},
        "status": {"phase": "Pending"},
    }
    grouped = json.loads(json.dumps(plain))
    grouped["metadata"]["ownerReferences"].append({"kind": "PodGroup", "name": "bp-x-1-g"})
    grouped["spec"]["schedulingGroup"] = {"podGroupName": "bp-x-1-g"}
    grouped["status"]["conditions"] = [
        {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}
    ]
    read = [keep_pod(msgspec.json.decode(json.dumps(one), type=RawPod)) for one in (plain, grouped)]
    assert read[0] == read[1]
    opened = manifests.opening(read[1], "n0", ["0"], 7)
    assert set(opened["spec"]) == {"schedulingGates", "affinity"}, "the group is immutable"


def test_service_port_accepts_only_scheduler() -> None:
    (launch,) = launches([("n0", (0,))], serves=8000)
    labels = {"app.kubernetes.io/component": "scheduler"}
    settings = settings_for("jobs", scheduler_namespace="bp", scheduler_labels=labels)
    policy = manifests.entrance(launch, "uid", settings, 7)
    (pod,) = [job_of(launch)["metadata"]["name"]]
    assert policy["metadata"]["ownerReferences"] == manifests.owned_by(pod, "uid")
    assert policy["spec"] == {
        "podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": pod}},
        "policyTypes": ["Ingress"],
        "ingress": [
            {
                "from": [
                    {
                        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "bp"}},
                        "podSelector": {"matchLabels": labels},
                    }
                ],
                "ports": [{"port": 8000, "protocol": "TCP"}],
            }
        ],
    }
