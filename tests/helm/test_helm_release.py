"""A Helm release of the chart on a real API server; its pods run without containers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchpool_cluster import chart, kwok_nodes
from benchpool_cluster.access import Access
from benchpool_cluster.control_plane import ControlPlane, Timing
from benchpool_cluster.processes import Processes
from benchpool_cluster.releases import HelmFailed, Release
from benchpool_scheduler.contract import kubernetes as names
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(600)]

TOLERATIONS = [kwok_nodes.TOLERATION]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = f"/apis/{names.API_VERSION}/namespaces/benchpool-work/trainingjobs"
PARTS = ("hub", "proxy", "scheduler")


def values(**more: Any) -> dict[str, Any]:
    """Return the values of a site whose pods run on kwok nodes."""
    parts = {part: {"tolerations": TOLERATIONS} for part in PARTS}
    return {part: parts.get(part, {}) | more.get(part, {}) for part in {*parts, *more}}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """Yield a control plane for this module only, without objects of benchpool."""
    folder = tmp_path_factory.mktemp("empty-cluster")
    # kwok reports its nodes rarely; no test here concerns lost nodes.
    patient = Timing(node_grace=900, toleration=900)
    plane = ControlPlane(folder, Processes(folder / "run", tied=True), timing=patient)
    try:
        plane.start()
        kwok_nodes.start(plane.processes, plane.access.kubeconfig)
        for name in ("gpu-1", "gpu-2"):
            kwok_nodes.add(plane.access, name, gpus=4)
            kwok_nodes.wait_ready(plane.access, name)
        _offer_volumes(plane.access)
        yield plane.access
    finally:
        plane.processes.kill_all()


def _offer_volumes(access: Access) -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    access.create(
        "/apis/storage.k8s.io/v1/storageclasses",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "by-hand", "annotations": default},
            "provisioner": "kubernetes.io/no-provisioner",
        },
    )
    for number in range(2):
        spec = {
            "capacity": {"storage": "50Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "by-hand",
            "hostPath": {"path": f"/nowhere/{number}"},
        }
        about = {"name": f"volume-{number}"}
        volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": about, "spec": spec}
        access.create("/api/v1/persistentvolumes", volume)


@pytest.fixture(scope="module")
def release(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Return the installed release."""
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(chart.FOLDER, folder / "chart")
    made = Release(access, "benchpool", folder, folder / "chart")
    (folder / "notes").write_text(made.install(values()))
    return made


def running(release: Release, part: str) -> set[str]:
    """Return the UIDs of a component's running pods."""
    query = f"?labelSelector=app.kubernetes.io/component={part}"
    found = release.access.get(f"/api/v1/namespaces/benchpool/pods{query}")["items"]
    return {one["metadata"]["uid"] for one in found if one["status"].get("phase") == "Running"}


def test_install_starts_all_parts(release: Release) -> None:
    assert [len(running(release, part)) for part in PARTS] == [1, 1, 2]
    assert "is installed as benchpool" in (release.folder / "notes").read_text()


def test_preflight_leaves_no_cluster_roles(release: Release) -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1"
    for kind in ("clusterroles", "clusterrolebindings"):
        assert release.access.find(f"{roles}/{kind}/benchpool-preflight") is None
    job = release.access.get("/apis/batch/v1/namespaces/benchpool/jobs/benchpool-preflight")
    assert job["spec"]["ttlSecondsAfterFinished"] == 86400


def test_upgrade_keeps_secrets_and_proxy(release: Release) -> None:
    secret = "/api/v1/namespaces/benchpool/secrets/benchpool-secrets"
    before = release.access.get(secret)["data"], running(release, "proxy"), running(release, "hub")
    release.upgrade(values(hub={"tolerations": TOLERATIONS, "config": {"JupyterHub": {"a": 1}}}))
    after = release.access.get(secret)["data"], running(release, "proxy"), running(release, "hub")
    assert after[:2] == before[:2]
    assert not after[2] & before[2]


def test_upgrade_updates_definitions(release: Release) -> None:
    path = f"{DEFINITIONS}/projects.{names.GROUP}"
    file = release.chart / "definitions" / "projects.yaml"
    changed = yaml.safe_load(file.read_text())
    changed["spec"]["names"]["shortNames"] = ["renamed"]
    file.write_text(yaml.safe_dump(changed))
    release.upgrade(values())
    assert release.access.get(path)["spec"]["names"]["shortNames"] == ["renamed"]


def test_rollback_restores_definitions(release: Release) -> None:
    release.helm("rollback", "benchpool", "--wait")
    found = release.access.get(f"{DEFINITIONS}/projects.{names.GROUP}")
    assert found["spec"]["names"]["shortNames"] != ["renamed"]


def test_second_release_reports_owner_of_definitions(release: Release, tmp_path: Path) -> None:
    second = Release(release.access, "benchpool-two", tmp_path)
    with pytest.raises(HelmFailed, match="invalid ownership metadata"):
        second.install(values(preflight={"enabled": False}), "--no-hooks")


def test_uninstall_keeps_homes_and_jobs(release: Release) -> None:
    access = release.access
    job = {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": "kept"},
        "spec": {"command": ["true"], "user": "admin"},
    }
    access.create(JOBS, job)
    home = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "home-susan"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    access.create("/api/v1/namespaces/benchpool-work/persistentvolumeclaims", home)
    release.uninstall()
    assert access.get(f"{JOBS}/kept")["metadata"].get("finalizers") is None
    assert access.find("/api/v1/namespaces/benchpool-work/persistentvolumeclaims/home-susan")
    for part in ("hub", "scheduler"):
        claims = "/api/v1/namespaces/benchpool/persistentvolumeclaims"
        assert access.find(f"{claims}/benchpool-{part}")
    admission = "/apis/admissionregistration.k8s.io/v1"
    roles = "/apis/rbac.authorization.k8s.io/v1"
    for path in (
        f"{admission}/validatingadmissionpolicies",
        f"{admission}/validatingadmissionpolicybindings",
        f"{roles}/clusterroles",
        f"{roles}/clusterrolebindings",
    ):
        left = [one["metadata"]["name"] for one in access.get(path)["items"]]
        assert not [one for one in left if one.startswith("benchpool")], path
    until(lambda: not running(release, "hub"))


def test_reinstall_finds_kept_jobs(release: Release) -> None:
    release.install(values())
    assert release.access.find(f"{JOBS}/kept")
    assert [len(running(release, part)) for part in PARTS] == [1, 1, 2]


def test_namespaces_and_definitions_can_be_deleted(release: Release) -> None:
    release.uninstall()
    for name in ("benchpool-work", "benchpool"):
        release.access.delete(f"/api/v1/namespaces/{name}")
    for name in ("benchpool-work", "benchpool"):
        release.access.wait_gone(f"/api/v1/namespaces/{name}")
    for one in release.access.get(DEFINITIONS)["items"]:
        release.access.delete(f"{DEFINITIONS}/{one['metadata']['name']}")
        release.access.wait_gone(f"{DEFINITIONS}/{one['metadata']['name']}")
