"""The node agent in the rendered chart has only the rights that it needs; offline."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from helm_python import HelmError

from benchpool_cluster import chart
from benchpool_cluster.chart import Manifest
from benchpool_scheduler.contract.kubernetes import NODE_AGENT_AUDIENCE
from benchpool_scheduler.node_agent.settings import AgentSettings

ON: Manifest = {"telemetry": {"every": 10, "agent": {"enabled": True}}}
SELECTOR = {
    "app.kubernetes.io/name": "benchpool",
    "app.kubernetes.io/instance": "benchpool",
    "app.kubernetes.io/component": "node-agent",
}


def pod(values: Manifest = ON) -> Manifest:
    daemon = chart.render(values).the("DaemonSet", "benchpool-node-agent")
    spec: Manifest = daemon["spec"]["template"]["spec"]
    return spec


def variables(spec: Manifest) -> dict[str, Any]:
    (container,) = spec["containers"]
    return {it["name"]: it.get("value", it.get("valueFrom")) for it in container["env"]}


def scheduler_variable(values: Manifest, name: str) -> str:
    deployment = chart.render(values).the("Deployment", "benchpool-scheduler")
    return str(variables(deployment["spec"]["template"]["spec"])[name])


def test_node_agent_is_off_by_default() -> None:
    assert chart.render().of("DaemonSet") == []
    assert scheduler_variable({}, "BENCHPOOL_NODE_AGENT") == ""
    assert "tokenreviews" not in json.dumps(chart.render().objects)


def test_node_agent_runs_on_tainted_gpu_nodes() -> None:
    spec = pod()
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}]


def test_node_agent_has_no_capabilities_and_reads_two_folders() -> None:
    spec = pod()
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
    assert spec["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    paths = {it["name"]: it["hostPath"]["path"] for it in spec["volumes"] if "hostPath" in it}
    assert paths == {
        "pod-resources": "/var/lib/kubelet/pod-resources",
        "cgroups": "/sys/fs/cgroup",
    }
    mounts = {it["name"]: it.get("readOnly", False) for it in container["volumeMounts"]}
    assert {name for name, only in mounts.items() if not only} == {"tmp"}


def test_node_agent_token_is_valid_for_scheduler_only() -> None:
    spec = pod()
    assert spec["automountServiceAccountToken"] is False
    account = chart.render(ON).the("ServiceAccount", "benchpool-node-agent")
    assert account["automountServiceAccountToken"] is False
    (token,) = (it["projected"] for it in spec["volumes"] if "projected" in it)
    (source,) = token["sources"]
    assert source["serviceAccountToken"]["audience"] == NODE_AGENT_AUDIENCE
    assert source["serviceAccountToken"]["expirationSeconds"] == 3600
    bound = [
        it["metadata"]["name"]
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for it in chart.render(ON).of(kind)
        for subject in it["subjects"]
        if subject["name"] == "benchpool-node-agent"
    ]
    assert bound == []


def test_scheduler_may_review_tokens_of_node_agent() -> None:
    assert scheduler_variable(ON, "BENCHPOOL_NODE_AGENT") == (
        "system:serviceaccount:benchpool:benchpool-node-agent"
    )
    rules = chart.render(ON).the("ClusterRole", "benchpool-scheduler")["rules"]
    assert {
        "apiGroups": ["authentication.k8s.io"],
        "resources": ["tokenreviews"],
        "verbs": ["create"],
    } in rules


def test_node_agent_reads_every_given_setting() -> None:
    given = variables(pod())
    settings = AgentSettings.read({**given, "BENCHPOOL_NODE_NAME": "n0"})
    assert settings.url == ("http://benchpool-scheduler.benchpool.svc:8080/services/benchpool")
    assert (str(settings.token), settings.every_s) == ("/run/benchpool/token", 10.0)
    source = (Path(chart.FOLDER).parents[1] / "scheduler").rglob("node_agent/settings.py")
    text = "".join(it.read_text() for it in source)
    ours = {name for name in given if name.startswith("BENCHPOOL_")}
    assert {name for name in ours if name not in text} == set()


def test_node_agent_has_no_ingress_and_reaches_scheduler() -> None:
    rendered = chart.render(ON)
    own = rendered.the("NetworkPolicy", "benchpool-node-agent")["spec"]
    assert own["podSelector"] == {"matchLabels": SELECTOR}
    assert own["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in own
    ports = {port["port"] for rule in own["egress"] for port in rule["ports"]}
    assert ports == {53, 8080}
    door = rendered.the("NetworkPolicy", "benchpool-scheduler")["spec"]["ingress"]
    assert {"podSelector": {"matchLabels": SELECTOR}} in door[0]["from"]


def test_runtime_class_and_driver_are_configurable() -> None:
    agent = {"enabled": True, "runtimeClass": "nvidia", "driver": "/opt/driver"}
    spec = pod({"telemetry": {"agent": agent}})
    assert spec["runtimeClassName"] == "nvidia"
    assert variables(spec)["LD_LIBRARY_PATH"] == "/host/driver"
    paths = [it["hostPath"]["path"] for it in spec["volumes"] if "hostPath" in it]
    assert "/opt/driver" in paths
    assert "LD_LIBRARY_PATH" not in variables(pod())
    assert "runtimeClassName" not in pod()


def test_two_telemetry_sources_are_rejected() -> None:
    message = "GPUs would be counted twice. Set only one of them."
    values = {"telemetry": {"prometheus": "http://p", "agent": {"enabled": True}}}
    with pytest.raises(HelmError, match=re.escape(message)):
        chart.render(values)


def test_node_agent_objects_match_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(sys.prefix) / "schemas")])
    validate: Any = importlib.import_module("kubernetes_validate").validate
    ours = [it for it in chart.render(ON).objects if "node-agent" in it["metadata"]["name"]]
    assert sorted(it["kind"] for it in ours) == ["DaemonSet", "NetworkPolicy", "ServiceAccount"]
    for one in ours:
        validate(one, "1.34", strict=True)
