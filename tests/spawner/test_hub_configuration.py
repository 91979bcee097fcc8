"""The Hub's configuration files load into any Hub and keep its settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jupyterhub.app import JupyterHub
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

HUB_CONFIG = Path(__file__).parents[2] / "hub_config"

# The state that zero-to-jupyterhub's own configuration leaves for hub.extraConfig.
BEFORE = """
c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.JupyterHub.services = []
c.JupyterHub.services.append({"name": "culler", "api_token": "c" * 20})
c.JupyterHub.load_roles = []
c.JupyterHub.load_roles.append({"name": "culler", "scopes": ["delete:servers"]})
c.JupyterHub.template_paths = ["/etc/templates"]
c.JupyterHub.concurrent_spawn_limit = 64
c.KubeSpawner.profile_list = [{"display_name": "One"}]
c.KubeSpawner.start_timeout = 300
"""

FACTS: dict[str, Any] = {
    "namespace": "bench-work",
    "release_namespace": "bench",
    "account": "bench-user",
    "base_url": "/",
    "public_url": "https://bench.example.org",
    "cookie_options": {"samesite": "Lax", "secure": True},
    "hub_url": "http://bench-hub.bench.svc:8081",
    "proxy_api_url": "http://bench-proxy-api.bench.svc:8001",
    "scheduler_url": "http://bench-scheduler.bench.svc:8888/services/benchpool",
    "scheduler_address": "http://bench-scheduler.bench.svc:8888",
    "hub_proxies": "bench-proxy-pods.bench.svc",
    "trusted_proxies": "10.0.0.0/24",
    "image": "benchpool/notebook:1",
    "pull_policy": "IfNotPresent",
    "pull_secrets": [],
    "authenticator": {"class": "shared-password", "admins": ["admin"], "allowAll": True},
    "notebooks": {
        "storage": {"size": "10Gi", "class": "", "accessMode": "ReadWriteOnce"},
        "cpu": {"guarantee": 0.5, "limit": None},
        "memory": {"guarantee": "1G", "limit": None},
        "profiles": [],
        "nodeSelector": {},
        "tolerations": [],
        "startTimeout": 200,
    },
    "config": {"KubeSpawner": {"mem_guarantee": "3G"}},
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set the environment of the Hub's process."""
    monkeypatch.setenv("BENCHPOOL_SCHEDULER_URL", FACTS["scheduler_url"])
    monkeypatch.setenv("BENCHPOOL_HUB_TOKEN", "h" * 40)
    monkeypatch.setenv("BENCHPOOL_SERVICE_TOKEN", "s" * 40)
    monkeypatch.setenv("BENCHPOOL_DATABASE_URL", "sqlite://")
    monkeypatch.setenv("BENCHPOOL_USER_PASSWORD", "u" * 20)
    monkeypatch.setenv("BENCHPOOL_ADMIN_PASSWORD", "a" * 40)
    monkeypatch.setenv("BENCHPOOL_HUB_FACTS", str(tmp_path / "hub.json"))
    (tmp_path / "hub.json").write_text(json.dumps(FACTS))
    (tmp_path / "extra-10-own.py").write_text("c.KubeSpawner.cpu_limit = 4\n")


def loaded(file: Path) -> Config:
    return PyFileConfigLoader(file.name, path=str(file.parent)).load_config()


def test_existing_hub_keeps_its_configuration(
    tmp_path: Path,
) -> None:
    file = tmp_path / "jupyterhub_config.py"
    file.write_text(f'{BEFORE}\nload_subconfig("kubernetes.py", path="{HUB_CONFIG}")\n')
    hub = JupyterHub(config=loaded(file))
    assert hub.spawner_class.__name__ == "BenchpoolKubeSpawner"
    assert [service["name"] for service in hub.services] == [
        "culler",
        "benchpool",
        "benchpool-hub",
    ]
    assert {"culler", "benchpool-service"} <= {role["name"] for role in hub.load_roles}
    assert hub.template_paths[-1] == "/etc/templates"
    assert Path(hub.template_paths[0], "spawn_pending.html").is_file()
    spawner = hub.config["KubeSpawner"]
    assert spawner.start_timeout == 300
    assert spawner.profile_list == [{"display_name": "One"}]
    address = next(s["url"] for s in hub.services if s["name"] == "benchpool")
    assert address == FACTS["scheduler_address"]


def test_empty_hub_configuration_is_complete() -> None:
    hub = JupyterHub(config=loaded(HUB_CONFIG / "kubernetes.py"))
    assert [service["name"] for service in hub.services] == ["benchpool", "benchpool-hub"]
    assert hub.cleanup_servers is False


def test_chart_hub_uses_facts_and_site_overrides() -> None:
    hub = JupyterHub(config=loaded(HUB_CONFIG / "cluster.py"))
    spawner = hub.config["KubeSpawner"]
    assert (spawner.namespace, spawner.image) == ("bench-work", "benchpool/notebook:1")
    assert (spawner.mem_guarantee, spawner.cpu_limit) == ("3G", 4)
    assert spawner.container_security_context["capabilities"] == {"drop": ["ALL"]}
    assert hub.hub_connect_url == FACTS["hub_url"]
    assert hub.config["QuotaMixin"].scheduler_url == FACTS["scheduler_url"]
