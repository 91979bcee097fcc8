"""The two overlays that run benchpool beside a JupyterHub of zero-to-jupyterhub."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from traitlets.config.loader import PyFileConfigLoader

from benchpool_cluster import chart

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "helm" / "overlays"

# The settings that the overlay sets, named as in the values of zero-to-jupyterhub 4.1. Its
# changelog up to 4.4 names none of them.
KNOWN = {
    "hub.image.name",
    "hub.image.tag",
    "hub.extraEnv",
    "hub.extraConfig",
    "hub.networkPolicy.ingress",
    "singleuser.image.name",
    "singleuser.image.tag",
    "singleuser.cloudMetadata.blockWithIptables",
    "singleuser.networkPolicy.egress",
}


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((OVERLAYS / name).read_text())
    return found


@pytest.fixture(scope="module")
def beside() -> chart.Rendered:
    """Return the chart rendered beside an existing Hub."""
    return chart.render(read("benchpool.yaml"), namespace="jupyter")


def test_only_scheduler_is_installed(beside: chart.Rendered) -> None:
    assert [one["metadata"]["name"] for one in beside.of("Deployment")] == ["benchpool-scheduler"]
    assert not beside.of("Namespace")


def test_existing_hub_account_may_create_gpu_pods(beside: chart.Rendered) -> None:
    policy = str(beside.the("ValidatingAdmissionPolicy", "benchpool-gpus"))
    assert "system:serviceaccount:jupyter:hub" in policy


def test_network_policies_select_only_own_pods(beside: chart.Rendered) -> None:
    ours = [{"benchpool.io/role": "worker"}, {"app.kubernetes.io/component": "scheduler"}]
    for one in beside.of("NetworkPolicy"):
        selector = one["spec"]["podSelector"]
        chosen = selector.get("matchLabels", {})
        of_copies = {
            it["key"]: set(it["values"]) for it in selector.get("matchExpressions", ())
        }.get("app.kubernetes.io/component", set())
        copies = bool(of_copies) and of_copies <= COPIES
        assert copies or any(want.items() <= chosen.items() for want in ours), one["metadata"]


COPIES = {"copy-hub", "copy-pool", "restore-hub", "restore-pool"}
"""Components that exist only in this chart: the copy and restore jobs."""


def test_scheduler_uses_existing_hub(beside: chart.Rendered) -> None:
    (container,) = beside.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"][
        "containers"
    ]
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert variables["JUPYTERHUB_API_URL"] == "http://hub.jupyter.svc:8081/hub/api"
    assert variables["BENCHPOOL_NAMESPACE"] == "jupyter"


def test_overlay_sets_only_known_values() -> None:
    def leaves(values: dict[str, Any], path: str = "") -> set[str]:
        found: set[str] = set()
        for key, value in values.items():
            here = f"{path}.{key}".lstrip(".")
            deeper = isinstance(value, dict) and here not in KNOWN
            found |= leaves(value, here) if deeper else {here}
        return found

    assert leaves(read("zero-to-jupyterhub.yaml")) == KNOWN


def test_overlay_names_service_and_secrets_of_chart(beside: chart.Rendered) -> None:
    environment = read("zero-to-jupyterhub.yaml")["hub"]["extraEnv"]
    service = beside.the("Service", "benchpool-scheduler")
    port = service["spec"]["ports"][0]["port"]
    url = f"http://benchpool-scheduler:{port}/services/benchpool"
    assert environment.pop("BENCHPOOL_SCHEDULER_URL") == url
    for variable in environment.values():
        reference = variable["valueFrom"]["secretKeyRef"]
        assert reference["key"] in beside.the("Secret", reference["name"])["data"]


def test_overlay_network_rules_select_scheduler(beside: chart.Rendered) -> None:
    overlay = read("zero-to-jupyterhub.yaml")
    labels = beside.the("Deployment", "benchpool-scheduler")["spec"]["template"]["metadata"][
        "labels"
    ]
    rules = [
        *overlay["hub"]["networkPolicy"]["ingress"],
        *overlay["singleuser"]["networkPolicy"]["egress"],
    ]
    for rule in rules:
        (peer,) = rule.get("from") or rule["to"]
        assert peer["podSelector"]["matchLabels"].items() <= labels.items()


def test_overlay_configuration_extends_existing_hub(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (installed := tmp_path / "share/benchpool").mkdir(parents=True)
    (installed / "hub_config").symlink_to(ROOT / "hub_config")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    overlay = read("zero-to-jupyterhub.yaml")["hub"]
    for name in overlay["extraEnv"]:
        monkeypatch.setenv(name, "http://benchpool-scheduler:8080/services/benchpool")
    # As in zero-to-jupyterhub: its own settings, then each entry of hub.extraConfig.
    lines = [
        "c = get_config()",
        "c.JupyterHub.spawner_class = 'kubespawner.KubeSpawner'",
        "c.KubeSpawner.image = 'theirs'",
        "c.JupyterHub.services.append({'name': 'jupyterhub-idle-culler'})",
        "c.JupyterHub.load_roles.append({'name': 'jupyterhub-idle-culler'})",
        *overlay["extraConfig"].values(),
    ]
    (tmp_path / "jupyterhub_config.py").write_text("\n".join(lines))
    config = PyFileConfigLoader("jupyterhub_config.py", path=str(tmp_path)).load_config()
    assert config.JupyterHub.spawner_class == "benchpool_spawner.kube.BenchpoolKubeSpawner"
    assert config.KubeSpawner.image == "theirs"
    names = [one["name"] for one in _all(config.JupyterHub.services)]
    assert names == ["jupyterhub-idle-culler", "benchpool", "benchpool-hub"]
    assert "benchpool-service" in [one["name"] for one in _all(config.JupyterHub.load_roles)]


def _all(lazy: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lazy.get_value([])
    return found


def test_notes_omit_pod_security_for_existing_hub(
    beside: chart.Rendered,
) -> None:
    (label,) = [line for line in beside.notes.splitlines() if "kubectl label namespace" in line]
    assert label.split() == [
        "kubectl",
        "label",
        "namespace",
        "jupyter",
        "benchpool.io/managed=true",
    ]
    assert "every start" in beside.notes
    ours = chart.render({"workspace": {"create": False}}).notes
    assert "pod-security.kubernetes.io/enforce=restricted" in ours


def test_hub_image_ends_with_numeric_user() -> None:
    lines = (OVERLAYS / "hub.Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users == ["root", "1000"]
    declared = {line.split()[1] for line in lines if line.startswith(("ARG ", "ENV "))}
    used = set(re.findall(r"\$\{(\w+)\}", "\n".join(lines)))
    assert used <= declared, "an ARG of the base is not known here"


def test_make_target_explains_missing_chart() -> None:
    result = subprocess.run(
        ["make", "-n", "test-z2jh"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "No chart given, so nothing was tested. Set CHART=DIR" in result.stdout


def test_page_includes_all_overlays() -> None:
    page = (ROOT / "docs/howto/add-to-zero-to-jupyterhub.md").read_text()
    shown = re.findall(r"\{literalinclude\} \.\./\.\./helm/overlays/(\S+)", page)
    assert sorted(shown) == sorted(one.name for one in OVERLAYS.iterdir())
