"""The custom resources for users: kubectl and messages of the API server."""

from __future__ import annotations

import itertools
import subprocess
from typing import Any

import pytest
import yaml

from benchpool_cluster import build
from benchpool_cluster.access import Access
from benchpool_scheduler.kube import Connection, KubeInvalid
from benchpool_scheduler.resources.declaring import Resource
from benchpool_scheduler.resources.jobs import TRAINING_JOBS
from benchpool_scheduler.resources.leases import BUILD_LEASES
from benchpool_scheduler.resources.pools import NODE_POOLS, POOL_SETTINGS, PROJECTS
from benchpool_support.waiting import until_async

pytestmark = pytest.mark.kubernetes

JOB = TRAINING_JOBS.kind
RUN = {"script": {"path": "train.py"}, "user": "susan", "project": "vision"}


def kubectl(access: Access, *words: str, text: str | None = None) -> str:
    command = [str(build.find("kubectl")), "--kubeconfig", str(access.kubeconfig), *words]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def job(name: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": JOB.api_version,
        "kind": JOB.kind,
        "metadata": {"name": name},
        "spec": RUN | spec,
    }


async def refusal(
    connection: Connection, resource: Resource, namespace: str | None, spec: dict[str, Any],
    name: str = "one",
) -> str:  # fmt: skip
    body = {
        "apiVersion": resource.kind.api_version,
        "kind": resource.kind.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    with pytest.raises(KubeInvalid) as refused:
        await connection.create(resource.kind, body, namespace=namespace)
    return refused.value.text


async def test_omitted_fields_get_defaults(connection: Connection, namespace: str) -> None:
    made = await connection.create(JOB, job("plain"), namespace=namespace)
    assert made["spec"] == RUN | {
        "gpus": 1,
        "workers": 1,
        "priority": 50,
        "preemptible": True,
        "spread": False,
        "afterAny": False,
        "cpus": 0,
        "memoryGib": 0,
        "suspend": False,
    } | {"script": {"path": "train.py"}}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"script": None}, "exactly one of script, module, command and notebook"),
        ({"module": {"module": "train"}}, "exactly one of script, module, command and notebook"),
        ({"workers": 2, "minWorkers": 3}, "choose from 1 to the number of workers"),
        ({"gpus": 0}, "should be greater than or equal to 1"),
        ({"gpus": 1025}, "should be less than or equal to 1024"),
        ({"gpus": 1.5}, "must be of type integer"),
        ({"gpus": "all"}, "must be of type integer"),
        ({"workers": 4097}, "should be less than or equal to 4096"),
        ({"env": {"1X": "1"}}, "use letters, digits and _"),
        ({"env": {"BENCHPOOL_JOB_ID": "1"}}, "set by benchpool"),
        ({"priority": 1001}, "should be less than or equal to 1000"),
        ({"timeLimitSeconds": 0}, "should be greater than or equal to 1"),
        ({"script": {"path": ""}}, "should be at least 1 chars long"),
        (
            {"script": None, "notebook": {"sha256": "0" * 63, "name": "a.ipynb"}},
            "should match",
        ),
        (
            {"script": None, "notebook": {"sha256": "0" * 64, "name": "a/b.ipynb"}},
            "should match",
        ),
    ],
)
async def test_invalid_job_is_rejected_with_message(
    connection: Connection, namespace: str, spec: dict[str, Any], words: str
) -> None:
    whole = {key: value for key, value in (RUN | spec).items() if value is not None}
    assert words in await refusal(connection, TRAINING_JOBS, namespace, whole)


async def test_accepted_job_allows_only_pause_and_scale(
    connection: Connection, namespace: str
) -> None:
    await connection.create(JOB, job("kept", gpus=2), namespace=namespace)
    await connection.patch(JOB, "kept", {"spec": {"gpus": 3}}, namespace=namespace)
    await _police_is_there(connection, namespace)
    accepted = {"status": {"id": "a" * 26, "state": "queued"}}
    await connection.patch(JOB, "kept", accepted, namespace=namespace, subresource="status")
    for change in (
        {"cpus": 4},
        {"user": "joe"},
        {"env": {"A": "1"}},
        {"script": {"path": "other.py"}},
        {"topology": {"required": "rack"}},
        {"preemptible": False},
    ):
        with pytest.raises(KubeInvalid, match="stays as it was accepted"):
            await connection.patch(JOB, "kept", {"spec": change}, namespace=namespace)
    changed = await connection.patch(
        JOB, "kept", {"spec": {"suspend": True, "workers": 3}}, namespace=namespace
    )
    assert (changed["spec"]["suspend"], changed["spec"]["workers"]) == (True, 3)


async def _police_is_there(connection: Connection, namespace: str) -> None:
    """Wait until a new policy is enforced, which takes a moment."""
    await connection.create(JOB, job("probe"), namespace=namespace)
    accepted = {"status": {"id": "b" * 26}}
    await connection.patch(JOB, "probe", accepted, namespace=namespace, subresource="status")
    cpus = itertools.count(2)

    async def refused() -> bool:
        spec = {"spec": {"cpus": next(cpus)}}
        try:
            await connection.patch(JOB, "probe", spec, namespace=namespace)
        except KubeInvalid:
            return True
        return False

    await until_async(refused)


async def test_scale_subresource_sets_workers(connection: Connection, namespace: str) -> None:
    await connection.create(JOB, job("elastic", minWorkers=1), namespace=namespace)
    scale = {"spec": {"replicas": 6}}
    await connection.patch(JOB, "elastic", scale, namespace=namespace, subresource="scale")
    found = await connection.get(JOB, "elastic", namespace=namespace)
    assert found["spec"]["workers"] == 6


def test_kubectl_shows_printer_columns(
    defined: Access, connection: Connection, namespace: str
) -> None:
    shown = job("shown", name="train", user="susan")
    created = kubectl(defined, "-n", namespace, "create", "-f", "-", text=_yaml(shown))
    assert "created" in created
    reason = {"code": "fair-share-reached", "text": "Vision has its share of 4 GPUs."}
    status = {"status": {"state": "queued", "project": "vision", "reason": reason}}
    kubectl(
        *(defined, "-n", namespace, "patch", "tj", "shown", "--subresource=status"),
        *("--type=merge", "-p", _yaml(status)),
    )
    printed = kubectl(defined, "-n", namespace, "get", "tj").splitlines()
    assert printed[0].split() == [
        *("NAME", "JOB", "USER", "PROJECT", "GPUS", "WORKERS", "STATE", "REASON", "AGE"),
    ]
    assert printed[1].split()[:-1] == [
        *("shown", "train", "susan", "vision", "1", "1", "queued", "fair-share-reached")
    ]
    assert "4 GPUs" in kubectl(defined, "-n", namespace, "get", "tj", "-o", "wide")
    assert "GPUs of each worker" in kubectl(defined, "explain", "trainingjob.spec.gpus")


@pytest.mark.parametrize(
    ("resource", "name", "spec", "words"),
    [
        (PROJECTS, "a", {"quota": -1}, "quota is a number of GPUs from 0, or `unlimited`"),
        (PROJECTS, "a", {"quota": "some"}, "quota is a number of GPUs from 0, or `unlimited`"),
        (PROJECTS, "a", {"parent": "a"}, "cannot be its own parent"),
        (PROJECTS, "a", {"name": "b", "parent": "b"}, "cannot be its own parent"),
        (PROJECTS, "a", {"members": ["team:x"]}, "`group:NAME` for a group"),
        (NODE_POOLS, "a", {"serves": ["lunch"]}, "supported values"),
        (POOL_SETTINGS, "mine", {}, "is named default"),
        (POOL_SETTINGS, "default", {"build": {"reserve": "all"}}, "or `auto`"),
    ],
)
async def test_invalid_settings_are_rejected_with_message(
    connection: Connection, resource: Resource, name: str, spec: dict[str, Any], words: str
) -> None:
    assert words in await refusal(connection, resource, None, spec, name)


async def test_lease_is_immutable(connection: Connection, namespace: str) -> None:
    spec = {
        "user": "susan",
        "spawn": "1",
        "gpus": ["node-a/0"],
        "since": "2026-11-21T16:00:00.123456Z",
    }
    body = {
        "apiVersion": BUILD_LEASES.kind.api_version,
        "kind": BUILD_LEASES.kind.kind,
        "metadata": {"name": "one"},
        "spec": spec,
    }
    await connection.create(BUILD_LEASES.kind, body, namespace=namespace)
    with pytest.raises(KubeInvalid, match="cannot change"):
        await connection.patch(
            BUILD_LEASES.kind, "one", {"spec": {"gpus": ["node-a/1"]}}, namespace=namespace
        )


def _yaml(body: dict[str, Any]) -> str:
    return str(yaml.safe_dump(body))
