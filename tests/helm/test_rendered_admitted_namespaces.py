"""Rendered chart for admitted namespaces: rights, policies and notes.

Pods of admitted namespaces get their GPUs from the pool.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from helm_python import HelmError

from benchpool_cluster.chart import Rendered, render
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import read_namespaces

SPACES = [
    {"name": "team-a", "project": "vision", "user": "susan", "projects": ["speech"]},
    {"name": "team-b", "project": "it's", "user": "joe"},
]


def rendered(mutating: str = "v1beta1", **more: Any) -> Rendered:
    """Return the chart with two admitted namespaces."""
    return render({"admittedNamespaces": SPACES, "policies": {"mutating": mutating}, **more})


def test_admitted_namespaces_are_off_by_default() -> None:
    plain = render()
    assert plain.of("MutatingAdmissionPolicy") == []
    names = [one["metadata"]["name"] for one in plain.of("ValidatingAdmissionPolicy")]
    assert "benchpool-admitted" not in names
    spaces = {one["metadata"]["namespace"] for one in plain.of("Role")}
    assert spaces == {"benchpool", "benchpool-work"}


def test_scheduler_reads_listed_namespaces() -> None:
    deployment = rendered().the("Deployment", "benchpool-scheduler")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (value,) = (
        it["value"] for it in container["env"] if it["name"] == "BENCHPOOL_ADMITTED_NAMESPACES"
    )
    found = read_namespaces(value)
    assert [one.name for one in found] == ["team-a", "team-b"]
    assert found[1].project == "it's"
    assert json.loads(value) == SPACES


def test_scheduler_may_only_patch_and_delete_pods() -> None:
    roles = {
        one["metadata"]["namespace"]: one["rules"]
        for one in rendered().of("Role")
        if one["metadata"]["namespace"].startswith("team-")
    }
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch", "delete"]}
    assert roles == {"team-a": [rule], "team-b": [rule]}


def test_notes_require_gate_without_mutating_policies() -> None:
    plain = rendered("auto")
    assert plain.of("MutatingAdmissionPolicy") == []
    assert "the templates of pods must contain the gate" in plain.notes
    assert "New pods get the gate automatically" in rendered().notes
    (policy,) = rendered("v1").of("MutatingAdmissionPolicy")
    assert policy["apiVersion"] == "admissionregistration.k8s.io/v1"


def test_work_namespace_is_rejected() -> None:
    own = [{"name": "benchpool-work", "project": "vision", "user": "susan"}]
    with pytest.raises(HelmError, match="List other namespaces only"):
        render({"admittedNamespaces": own})
