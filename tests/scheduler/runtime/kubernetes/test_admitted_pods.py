"""Pods of third-party controllers, admitted on a real API server."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.kube import connect, kinds
from benchpool_scheduler.runtime import EndedBy, Launch, WorkerId
from benchpool_scheduler.runtime.admitted import AdmittedWorkload
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import AdmittedNamespace
from benchpool_support.pods import KWOK, Stand, pause, settings_for
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes

DEPLOYMENTS = kinds.Kind("apps", "v1", "deployments", "Deployment")
GROUP = ({names.GROUP_NAME: "g"}, {names.GROUP_SIZE: "2"})


@pytest.fixture
async def admitting(
    plane: ControlPlane, nodes: tuple[str, ...], space: str, tmp_path: Path
) -> AsyncIterator[Stand]:
    """Yield a runtime that admits the pods of one namespace; no webhook adds the gate to them."""
    team = f"team-{uuid.uuid4().hex[:8]}"
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": team}}
    plane.access.create("/api/v1/namespaces", made)
    spaces = (AdmittedNamespace(team, "vision", "susan"),)
    async with connect(plane.access.kubeconfig) as connection:
        settings = settings_for(space, admitted_namespaces=spaces)
        stand = Stand(connection, settings, tmp_path, nodes)
        await stand.open()
        try:
            yield stand
        finally:
            await stand.close()
    plane.access.delete(f"/api/v1/namespaces/{team}")


def team_of(stand: Stand) -> str:
    """Return the admitted namespace."""
    return stand.settings.admitted_namespaces[0].name


def template(
    labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a pod template with the gate."""
    return {
        "metadata": {
            "labels": {names.ROLE: names.ROLE_ADMITTED, **(labels or {})},
            "annotations": annotations or {},
        },
        "spec": {
            "schedulingGates": [{"name": names.ADMISSION_GATE}],
            "containers": [
                {"name": "main", "image": "any", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            ],
            "tolerations": [KWOK],
        },
    }


def deployment(replicas: int) -> dict[str, Any]:
    """Return a Deployment."""
    return {
        "metadata": {"name": "llm"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "llm"}},
            "template": template({"app": "llm"}),
        },
    }


async def until_admitted(stand: Stand, *pods: int) -> list[AdmittedWorkload]:
    """Wait for workloads without a problem that have these pod counts, and return them."""
    return await until_async(
        lambda: [one for one in stand.runtime.admits.admitted() if not one.problem],
        holds=lambda found: sorted(len(one.pods) for one in found) == sorted(pods),
    )


def launches(one: AdmittedWorkload, *nodes: str, attempt: int = 1) -> list[Launch]:
    """Return the launches of a workload on these nodes."""
    return [
        Launch(
            WorkerId(one.job, attempt, index),
            (),
            {},
            (f"{node}/{index}",),
            None,
            nodes=nodes,
            admitted=True,
            grace_s=5.0,
        )
        for index, node in enumerate(nodes)
    ]


async def test_deployment_pods_run_on_assigned_node(
    admitting: Stand,
) -> None:
    node, team = admitting.nodes[1], team_of(admitting)
    await admitting.connection.create(DEPLOYMENTS, deployment(2), namespace=team)
    first, _ = await until_admitted(admitting, 1, 1)
    assert first.owner_kind == "ReplicaSet"
    (launch,) = launches(first, node)
    await admitting.start([launch])
    await admitting.started(launch.worker)
    pod = await admitting.connection.get(kinds.PODS, first.pods[0], namespace=team)
    assert pod["spec"]["nodeName"] == node
    assert pod["metadata"]["labels"][names.JOB] == first.job
    await admitting.until_devices("u" * 12)


async def test_preempted_pod_is_deleted_and_replacement_waits(
    admitting: Stand,
) -> None:
    team = team_of(admitting)
    await admitting.connection.create(DEPLOYMENTS, deployment(1), namespace=team)
    (first,) = await until_admitted(admitting, 1)
    (launch,) = launches(first, admitting.nodes[0])
    await admitting.start([launch])
    await admitting.started(launch.worker)
    await admitting.runtime.stop(launch.worker, pause())
    (ended,) = await admitting.ended(launch.worker)
    assert ended.by is EndedBy.NOTICE

    async def another() -> bool:
        there = admitting.runtime.admits.admitted()
        return [one.job == first.job for one in there] == [False] and there[0].waiting

    await until_async(another)


async def test_gang_of_job_starts_together(admitting: Stand) -> None:
    team = team_of(admitting)
    spec: dict[str, Any] = {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "template": template(*GROUP),
    }
    spec["template"]["spec"]["restartPolicy"] = "Never"
    await admitting.connection.create(
        kinds.JOBS, {"metadata": {"name": "train"}, "spec": spec}, namespace=team
    )
    (gang,) = await until_admitted(admitting, 2)
    assert gang.owner_kind == "Job"
    started = launches(gang, *admitting.nodes[:2])
    await admitting.start(started[:1])
    await admitting.start(started[1:])
    await admitting.started(*(one.worker for one in started))


async def test_restarted_scheduler_finds_admitted_pods(admitting: Stand) -> None:
    team = team_of(admitting)
    await admitting.connection.create(DEPLOYMENTS, deployment(1), namespace=team)
    (first,) = await until_admitted(admitting, 1)
    (launch,) = launches(first, admitting.nodes[2])
    await admitting.start([launch])
    await admitting.started(launch.worker)
    again = await admitting.restarted([launch.worker])
    await again.started(launch.worker)
    await again.until_devices("u" * 12)
    await again.connection.delete(kinds.PODS, first.pods[0], namespace=team)
    (ended,) = await again.ended(launch.worker)
    assert ended.by is EndedBy.LOST


async def test_wait_reason_is_pod_annotation(admitting: Stand) -> None:
    team = team_of(admitting)
    await admitting.connection.create(DEPLOYMENTS, deployment(1), namespace=team)
    (first,) = await until_admitted(admitting, 1)
    admitting.runtime.admits.write_reason(first.job, "no GPU is free")

    async def annotated() -> bool:
        pod = await admitting.connection.get(kinds.PODS, first.pods[0], namespace=team)
        return bool(pod["metadata"].get("annotations", {}).get(names.REASON) == "no GPU is free")

    await until_async(annotated)
