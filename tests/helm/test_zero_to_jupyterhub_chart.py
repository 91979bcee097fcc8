"""The overlays on the chart of zero-to-jupyterhub, if a copy is given (`make test-z2jh`)."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_python import Chart

ROOT = Path(__file__).resolve().parents[2]
OVERLAYS = ROOT / "helm" / "overlays"
CHART = os.environ.get("BENCHPOOL_Z2JH_CHART", "")

pytestmark = pytest.mark.skipif(
    not CHART, reason="no chart of zero-to-jupyterhub: make test-z2jh CHART=DIR"
)

Manifest = dict[str, Any]


def overlay(name: str) -> Manifest:
    """Return the values of an overlay."""
    found: Manifest = yaml.safe_load((OVERLAYS / name).read_text())
    return found


@pytest.fixture(scope="module")
def rendered() -> list[Manifest]:
    """Return the chart rendered with the overlay only; an unknown value is rejected."""
    with Chart.load(Path(CHART)) as chart:
        texts = chart.render(
            values=overlay("zero-to-jupyterhub.yaml"), name="jupyterhub", namespace="jupyter"
        )
    return [
        one
        for name, text in texts.items()
        if not name.endswith("NOTES.txt")
        for one in yaml.safe_load_all(text)
        if one
    ]


def the(rendered: list[Manifest], kind: str, name: str) -> Manifest:
    (found,) = [one for one in rendered if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


def test_hub_runs_overlay_image_and_environment(
    rendered: list[Manifest],
) -> None:
    spec = the(rendered, "Deployment", "hub")["spec"]["template"]["spec"]
    (container,) = [one for one in spec["containers"] if one["name"] == "hub"]
    wanted = overlay("zero-to-jupyterhub.yaml")["hub"]
    assert container["image"] == f"{wanted['image']['name']}:{wanted['image']['tag']}"
    assert set(wanted["extraEnv"]) <= {one["name"] for one in container["env"]}


def test_configured_account_and_address_match_hub(
    rendered: list[Manifest],
) -> None:
    existing = overlay("benchpool.yaml")["hub"]["existing"]
    spec = the(rendered, "Deployment", "hub")["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == existing["serviceAccount"]
    service = the(rendered, "Service", "hub")
    ports = {one["port"] for one in service["spec"]["ports"]}
    found = re.fullmatch(r"http://hub\.jupyter\.svc:(\d+)/hub/api", existing["apiUrl"])
    assert found is not None
    assert int(found[1]) in ports


def test_hub_image_user_matches_chart(rendered: list[Manifest]) -> None:
    spec = the(rendered, "Deployment", "hub")["spec"]["template"]["spec"]
    (container,) = [one for one in spec["containers"] if one["name"] == "hub"]
    user = container["securityContext"]["runAsUser"]
    assert (OVERLAYS / "hub.Dockerfile").read_text().rstrip().endswith(f"USER {user}")


def test_network_policies_connect_scheduler_hub_and_notebooks(rendered: list[Manifest]) -> None:
    for name, way in (("hub", "ingress"), ("singleuser", "egress")):
        policy = the(rendered, "NetworkPolicy", name)["spec"]
        ours = overlay("zero-to-jupyterhub.yaml")[name]["networkPolicy"][way]
        assert all(one in policy[way] for one in ours), name


def test_servers_run_overlay_image_unprivileged(rendered: list[Manifest]) -> None:
    secret = the(rendered, "Secret", "hub")
    values = yaml.safe_load(base64.b64decode(secret["data"]["values.yaml"]))
    singleuser, wanted = values["singleuser"], overlay("zero-to-jupyterhub.yaml")["singleuser"]
    assert singleuser["cloudMetadata"]["blockWithIptables"] is False
    assert singleuser["image"]["name"] == wanted["image"]["name"]
    assert values["hub"]["extraConfig"].keys() >= {"50-benchpool"}
