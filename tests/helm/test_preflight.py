"""The preflight reports missing requirements, on a real API server and on scripted answers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchpool_cluster import chart
from benchpool_cluster.chart import Site

FILE = chart.FOLDER / "files" / "preflight.py"
GOOD: dict[str, Any] = {
    "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.4"},
    "/apis/admissionregistration.k8s.io/v1": {
        "resources": [{"name": "validatingadmissionpolicies"}]
    },
    "/api/v1/nodes": {
        "items": [
            {
                "metadata": {"name": "a", "labels": {"nvidia.com/gpu.product": "A100"}},
                "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "4"}},
            }
        ]
    },
    "/apis/storage.k8s.io/v1/storageclasses": {
        "items": [
            {
                "metadata": {
                    "name": "fast",
                    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                }
            }
        ]
    },
    "/apis/node.k8s.io/v1/runtimeclasses": {
        "items": [{"metadata": {"name": "nvidia"}, "handler": "nvidia"}]
    },
}


@pytest.fixture(scope="module")
def preflight() -> ModuleType:
    """Return the script in the chart as a module."""
    wanted = importlib.util.spec_from_file_location("chart_preflight", FILE)
    assert wanted is not None
    assert wanted.loader is not None
    module = importlib.util.module_from_spec(wanted)
    sys.modules["chart_preflight"] = module
    wanted.loader.exec_module(module)
    return module


def look(preflight: ModuleType, answers: Mapping[str, Any], **more: Any) -> list[tuple[str, str]]:
    """Return level and text of every finding."""
    wanted = {
        "workspace": "work",
        "makes_workspace": True,
        "release": "benchpool",
        "namespace": "benchpool",
        "storage_classes": [""],
        "shared": [],
        "prefixes": ["nvidia.com/"],
        "require_gpus": False,
    }
    found = preflight.findings(answers.get, preflight.wanted_of(wanted | more))
    return [(one.level, one.text) for one in found]


def test_complete_cluster_passes(preflight: ModuleType) -> None:
    found = look(preflight, GOOD)
    assert {level for level, _ in found} == {"ok"}
    assert ("ok", "4 GPUs on 1 nodes.") in found


DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.benchpool.io"
DISKS = {
    "metadata": {
        "name": "disks",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    },
    "provisioner": "ebs.csi.aws.com",
}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "an old version": (
        {"/version": {"major": "1", "minor": "29+", "gitVersion": "v1.29.0"}},
        {},
        "stop",
        "1.30 or newer is needed",
    ),
    "no policies": ({"/apis/admissionregistration.k8s.io/v1": {}}, {}, "stop", "is not served"),
    "no GPUs": (
        {"/api/v1/nodes": {"items": []}},
        {},
        "note",
        "Install the GPU vendor's device plugin",
    ),
    "no GPUs where they must be": (
        {"/api/v1/nodes": {"items": []}},
        {"require_gpus": True},
        "stop",
        "Install the GPU vendor's device plugin",
    ),
    "GPUs without a model": (
        {
            "/api/v1/nodes": {
                "items": [
                    {
                        "metadata": {"name": "a"},
                        "status": {"allocatable": {"nvidia.com/mig-1g.10gb": "7"}},
                    }
                ]
            }
        },
        {},
        "note",
        "nvidia.com/gpu.product",
    ),
    "no default storage": (
        {"/apis/storage.k8s.io/v1/storageclasses": {"items": []}},
        {},
        "note",
        "There is no default storage class",
    ),
    "a storage class that is not there": (
        {},
        {"storage_classes": ["slow"]},
        "stop",
        "There is no storage class slow. Existing classes: fast.",
    ),
    "a volume for many nodes from disks of one": (
        {"/apis/storage.k8s.io/v1/storageclasses": {"items": [DISKS]}},
        {"shared": [["scheduler.storage", ""]]},
        "note",
        "scheduler.storage must be ReadWriteMany, but storage class disks (ebs.csi.aws.com)",
    ),
    "no namespace": ({}, {"makes_workspace": False}, "stop", "Create it first"),
    "a namespace without the label": (
        {"/api/v1/namespaces/work": {"metadata": {"name": "work"}}},
        {"makes_workspace": False},
        "note",
        "lacks the label benchpool.io/managed=true",
    ),
    "definitions of another release": (
        {
            DEFINITION: {"metadata": {"name": "trainingjobs.benchpool.io"}},
        },
        {},
        "note",
        "--take-ownership",
    ),
    "no runtime classes": (
        {"/apis/node.k8s.io/v1/runtimeclasses": {"items": []}},
        {},
        "note",
        "accept-nvidia-visible-devices-envvar-when-unprivileged",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_missing_requirement_is_reported(preflight: ModuleType, case: str) -> None:
    changed, more, level, text = CASES[case]
    found = look(preflight, {**GOOD, **changed}, **more)
    assert any(one == level and text in message for one, message in found), found


def test_only_stop_findings_fail_install(
    preflight: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    ok, note, stop = (preflight.Finding(level, level) for level in ("ok", "note", "stop"))
    assert preflight.report([ok, note]) == 0
    assert preflight.report([ok, stop, note]) == 1
    assert "stop  stop" in capsys.readouterr().out


@pytest.mark.kubernetes
def test_preflight_account_may_read_checked_resources(
    site: Site, preflight: ModuleType, tmp_path: Path
) -> None:
    account = site.access.service_account("benchpool", "benchpool-preflight")
    read = preflight.reader(account.server, account.token, account.authority)
    wanted = preflight.wanted_of(
        {
            "workspace": site.workspace,
            "makes_workspace": True,
            "release": "benchpool",
            "namespace": "benchpool",
            "storage_classes": [""],
            "shared": [["scheduler.storage", ""]],
            "prefixes": ["nvidia.com/"],
            "require_gpus": True,
        }
    )
    found = [(one.level, one.text) for one in preflight.findings(read, wanted)]
    assert ("ok", "Kubernetes v1.34.4.") in found
    assert ("ok", "ValidatingAdmissionPolicy is served.") in found
    assert ("ok", "8 GPUs on 2 nodes.") in found
    assert any("There is no default storage class" in text for _, text in found)
    assert any("trainingjobs.benchpool.io" in text for _, text in found)
    assert all(level != "stop" for level, _ in found)
