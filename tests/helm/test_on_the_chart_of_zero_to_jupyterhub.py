"""Our overlays on the chart of zero-to-jupyterhub, where one is at hand (`make test-z2jh`)."""

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
    """The values of one of our overlays."""
    found: Manifest = yaml.safe_load((OVERLAYS / name).read_text())
    return found


@pytest.fixture(scope="module")
def rendered() -> list[Manifest]:
    """The chart with our overlay and nothing else; a value that it does not know is refused."""
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


def test_the_hub_runs_our_image_with_what_our_configuration_reads(
    rendered: list[Manifest],
) -> None:
    spec = the(rendered, "Deployment", "hub")["spec"]["template"]["spec"]
    (container,) = [one for one in spec["containers"] if one["name"] == "hub"]
    wanted = overlay("zero-to-jupyterhub.yaml")["hub"]
    assert container["image"] == f"{wanted['image']['name']}:{wanted['image']['tag']}"
    assert set(wanted["extraEnv"]) <= {one["name"] for one in container["env"]}


def test_the_account_and_address_that_our_release_is_told_are_the_hubs(
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


def test_the_image_of_the_hub_runs_as_whom_the_chart_runs_it(rendered: list[Manifest]) -> None:
    spec = the(rendered, "Deployment", "hub")["spec"]["template"]["spec"]
    (container,) = [one for one in spec["containers"] if one["name"] == "hub"]
    user = container["securityContext"]["runAsUser"]
    assert (OVERLAYS / "hub.Dockerfile").read_text().rstrip().endswith(f"USER {user}")


def test_scheduler_hub_and_notebooks_reach_each_other(rendered: list[Manifest]) -> None:
    for name, way in (("hub", "ingress"), ("singleuser", "egress")):
        policy = the(rendered, "NetworkPolicy", name)["spec"]
        ours = overlay("zero-to-jupyterhub.yaml")[name]["networkPolicy"][way]
        assert all(one in policy[way] for one in ours), name


def test_servers_have_no_privileged_container_and_run_our_image(rendered: list[Manifest]) -> None:
    secret = the(rendered, "Secret", "hub")
    values = yaml.safe_load(base64.b64decode(secret["data"]["values.yaml"]))
    singleuser, wanted = values["singleuser"], overlay("zero-to-jupyterhub.yaml")["singleuser"]
    assert singleuser["cloudMetadata"]["blockWithIptables"] is False
    assert singleuser["image"]["name"] == wanted["image"]["name"]
    assert values["hub"]["extraConfig"].keys() >= {"50-benchpool"}
