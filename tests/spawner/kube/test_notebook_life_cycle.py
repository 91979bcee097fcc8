"""Notebooks from click to end on a real Hub, scheduler, API server and kube-scheduler."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from benchpool_cluster.access import Access
from benchpool_scheduler.contract.kubernetes import LEASE
from benchpool_scheduler.kube import connect
from benchpool_support import kubernetes
from benchpool_support.hub_environments import EARLIER_LINE
from benchpool_support.kube_hub import (
    ADMIN_TOKEN,
    SERVICE_TOKEN,
    KubeHub,
    Notebooks,
    python_with_hub,
    running,
)
from benchpool_support.loopback import free_port
from benchpool_support.replicas import Replica, Site
from benchpool_support.waiting import until

pytestmark = pytest.mark.kubernetes

CONFIGURATION = """\
version: 1
build: {default: 2, reserve: 4, oversubscribe: true}
projects: [{name: p, quota: 4, members: [ada]}]
policy: {grace_s: 2}
"""
CONFIG = """
c.Spawner.start_timeout = 180
"""


@dataclass
class Lab:
    """A Hub and its scheduler."""

    hub: KubeHub
    site: Site
    access: Access
    replica: Replica

    def replace_scheduler(self) -> None:
        """Kill the scheduler and start another."""
        self.replica.kill()
        self.replica = _scheduler(self.site, self.replica.port)

    def leases(self, user: str) -> list[dict[str, Any]]:
        """Return the leases of a user from the API server."""
        path = f"/apis/benchpool.io/v1/namespaces/{self.hub.namespace}/buildleases"
        found = self.access.get(path)["items"]
        return [lease for lease in found if lease["spec"]["user"] == user]

    def pod(self, user: str) -> dict[str, Any] | None:
        """Return the pod of a user's default server."""
        path = f"/api/v1/namespaces/{self.hub.namespace}/pods/jupyter-{user}"
        return self.access.find(path)


def _scheduler(site: Site, port: int) -> Replica:
    replica = site.start()
    replica.port = port
    try:
        until(lambda: replica.serves(ADMIN_TOKEN))
    except AssertionError:
        raise AssertionError(replica.log.read_text()[-4000:]) from None
    return replica


@pytest.fixture(scope="module", params=["6.1", EARLIER_LINE])
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, access: Access
) -> Iterator[Lab]:
    """Yield a Hub of each release line with its own scheduler."""
    folder, namespace = tmp_path_factory.mktemp("lab"), f"lab-{secrets.token_hex(4)}"
    about = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    access.create("/api/v1/namespaces", about)
    port, notebooks = free_port(), Notebooks()
    hub = KubeHub(
        folder / "hub",
        python_with_hub(None if request.param == "6.1" else request.param),
        Path(access.kubeconfig),
        f"http://127.0.0.1:{port}/services/benchpool",
        namespace,
        notebooks,
        config=CONFIG,
    )

    async def define() -> None:
        async with connect(access.kubeconfig) as connection:
            await kubernetes.define(connection)

    asyncio.run(define())
    site = Site(
        hub.api_url,
        access.kubeconfig,
        namespace,
        folder,
        CONFIGURATION,
        more={
            "JUPYTERHUB_SERVICE_URL": f"http://127.0.0.1:{port}",
            "JUPYTERHUB_API_TOKEN": SERVICE_TOKEN,
        },
    )
    with running(hub):
        try:
            yield Lab(hub, site, access, _scheduler(site, port))
        finally:
            site.close()
    notebooks.close()


def test_notebook_runs_with_its_lease_and_releases_it(lab: Lab) -> None:
    lab.hub.add_user("susan")
    lab.hub.ask_server("susan", gpus=2)
    lab.hub.wait_ready("susan")
    (lease,), pod = lab.leases("susan"), lab.pod("susan")
    assert pod is not None
    assert pod["metadata"]["labels"][LEASE] == lease["metadata"]["name"]
    assert "schedulingGates" not in pod["spec"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    lab.hub.stop_server("susan")
    lab.hub.wait_gone("susan")
    until(lambda: not lab.leases("susan"))


def test_start_survives_scheduler_replacement(
    lab: Lab,
) -> None:
    lab.hub.add_user("jemma")
    lab.replica.kill()
    lab.hub.ask_server("jemma", gpus=1)
    time.sleep(0.5)
    lab.replica = _scheduler(lab.site, lab.replica.port)
    lab.hub.wait_ready("jemma")
    lab.replace_scheduler()
    assert len(lab.leases("jemma")) == 1
    lab.hub.stop_server("jemma")
    lab.hub.wait_gone("jemma")
    until(lambda: not lab.leases("jemma"))
