"""Proxies whose headers Hub and scheduler trust, as rendered."""

from __future__ import annotations

import json
from typing import Any

from benchpool_cluster import chart
from benchpool_scheduler.contract.forwarding import listed

BESIDE = {
    "enabled": False,
    "existing": {"apiUrl": "http://hub.jupyter.svc:8081/hub/api", "proxies": ["10.1.0.0/16"]},
}


def variables(release: chart.Rendered) -> dict[str, Any]:
    pod = release.the("Deployment", "benchpool-scheduler")["spec"]["template"]["spec"]
    return {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}


def test_proxy_pods_are_trusted_by_headless_service() -> None:
    release = chart.render({"proxy": {"trusted": ["10.0.0.0/24", "ingress.example.org"]}})
    service = release.the("Service", "benchpool-proxy-pods")
    pod = release.the("Deployment", "benchpool-proxy")["spec"]["template"]["metadata"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"].items() <= pod["labels"].items()
    facts = json.loads(release.the("Secret", "benchpool-hub")["stringData"]["hub.json"])
    environment = variables(release)
    for hub, before in (
        (environment["BENCHPOOL_HUB_PROXIES"], environment["BENCHPOOL_TRUSTED_PROXIES"]),
        (facts["hub_proxies"], facts["trusted_proxies"]),
    ):
        assert listed(hub).names == ("benchpool-proxy-pods.benchpool.svc",)
        assert listed(before) == listed("10.0.0.0/24,ingress.example.org")


def test_hidden_cookies_reach_scheduler() -> None:
    release = chart.render({"proxy": {"hiddenCookies": ["_oauth2_proxy", "authelia_session"]}})
    assert variables(release)["BENCHPOOL_HIDDEN_COOKIES"] == "_oauth2_proxy,authelia_session"


def test_proxy_of_existing_hub_is_configured() -> None:
    release = chart.render({"hub": BESIDE})
    assert variables(release)["BENCHPOOL_HUB_PROXIES"] == "10.1.0.0/16"
    assert not [it for it in release.of("Service") if "proxy" in it["metadata"]["name"]]
