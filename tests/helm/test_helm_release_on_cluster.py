"""The shipped chart and images, installed, upgraded and uninstalled with Helm."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchpool_cluster import pods, releases
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.releases import Release
from benchpool_scheduler.contract import kubernetes as names
from benchpool_support import direct
from benchpool_support.waiting import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(2400)]

POOL: dict[str, Any] = {
    "version": 1,
    "build": {"users": {"admin": 1}},
    "projects": [{"name": "research", "quota": 4, "members": ["admin"]}],
}
RESOURCES = f"/apis/{names.API_VERSION}"
FOREVER = [
    "python3",
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(1)); time.sleep(3600)",
]


def values(**more: Any) -> dict[str, Any]:
    """Return the values of a working site on the test cluster."""
    return releases.values() | {"pool": POOL, "policies": {"userPrefix": ""}} | more


@pytest.fixture(scope="module")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """Yield an installed release."""
    releases.load_images(cluster)
    name = f"benchpool-{uuid.uuid4().hex[:6]}"
    made = Release(cluster.access, name, tmp_path_factory.mktemp("helm"))
    try:
        notes = made.install(values())
        (made.folder / "notes").write_text(notes)
        yield made
    finally:
        made.take_away()


class Site:
    """Client that acts as the administrator's browser, through the proxy."""

    def __init__(self, release: Release) -> None:
        access = release.access
        space = f"/api/v1/namespaces/{release.name}"
        found = access.get(f"{space}/pods?labelSelector=app.kubernetes.io/component=proxy")
        (proxy,) = (p for p in found["items"] if not p["metadata"].get("deletionTimestamp"))
        url = f"http://{proxy['status']['podIP']}:8000"
        self.client = direct.Client(base_url=url, follow_redirects=True, timeout=30)
        self.password = release.secret("admin-password")

    def log_in(self) -> None:
        """Log in through the form."""
        self.client.get("/hub/login")
        form = {"username": "admin", "password": self.password, "_xsrf": self.xsrf}
        page = self.client.post("/hub/login?next=/hub/home", data=form)
        assert page.url.path == "/hub/home", page.text[-2000:]

    @property
    def xsrf(self) -> str:
        """Return the XSRF token of the Hub's pages."""
        return next(c.value or "" for c in self.client.cookies.jar if c.name == "_xsrf")

    def start_notebook(self, **options: Any) -> httpx.Response:
        """Start the default server through the Hub's API."""
        self.client.get("/hub/home")
        headers = {"X-XSRFToken": self.xsrf, "Referer": f"{self.client.base_url}/hub/home"}
        path = "/hub/api/users/admin/server"
        return self.client.post(path, json=options, headers=headers)


@pytest.fixture(scope="module")
def site(release: Release) -> Site:
    found = Site(release)
    found.log_in()
    return found


@pytest.fixture(scope="module")
def space(cluster: Cluster, release: Release) -> pods.Space:
    """Return the namespace of notebooks and jobs."""
    return pods.Space(cluster, release.workspace)


def test_notes_name_proxy_service_and_preflight_log(release: Release) -> None:
    notes = (release.folder / "notes").read_text()
    assert f"service/{release.name}-proxy-public" in notes
    assert f"logs job/{release.name}-preflight" in notes


def test_preflight_logs_its_findings(release: Release) -> None:
    access = release.access
    space = f"/api/v1/namespaces/{release.name}"
    query = f"{space}/pods?labelSelector=job-name={release.name}-preflight"
    (pod,) = access.get(query)["items"]
    log = access.call("GET", f"{space}/pods/{pod['metadata']['name']}/log").text
    assert "8 GPUs on 2 nodes." in log
    assert "stop" not in log
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    assert access.find(f"{roles}/{release.name}-preflight") is None


def test_all_parts_meet_restricted_standard(release: Release) -> None:
    access = release.access
    here = f"/api/v1/namespaces/{release.name}"
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    answer = access.call("PATCH", here, label, "merge")
    assert "Warning" not in answer.headers, answer.headers.get("Warning")


def test_quotas_of_values_are_in_force(release: Release) -> None:
    access = release.access
    project = access.wait(f"{RESOURCES}/projects/research", lambda one: True)
    assert project["spec"]["quota"] == 4


def test_login_reaches_hub_and_scheduler_through_proxy(site: Site) -> None:
    # The Hub registers its services at the proxy shortly after it becomes ready.
    health = "/services/benchpool/api/v1/health"
    until(lambda: site.client.get(health).text == '{"ok":true}')
    page = site.client.get("/services/benchpool/")
    assert page.status_code == 200
    assert "research" in page.text


@pytest.fixture(scope="module")
def notebook(site: Site, space: pods.Space) -> str:
    """Return the name of the pod of a running notebook with a GPU."""
    answer = site.start_notebook(gpus=1)
    assert answer.status_code in (201, 202), answer.text
    running = space.cluster.access.wait(
        space.path("pods", "jupyter-admin"),
        lambda pod: pod["status"].get("phase") == "Running",
        240,
    )
    return str(running["metadata"]["name"])


@pytest.fixture(scope="module")
def worker(release: Release, space: pods.Space) -> str:
    """Return the name of the pod of a running job sent with `kubectl apply`."""
    job = {
        "apiVersion": names.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": "by-hand"},
        "spec": {"command": FOREVER, "gpus": 1, "user": "admin", "project": "research"},
    }
    access = release.access
    access.create(f"{RESOURCES}/namespaces/{space.name}/trainingjobs", job)
    query = f"{space.path('pods')}?labelSelector={names.ROLE}={names.ROLE_WORKER}"

    def running() -> list[str]:
        found = [p for p in access.get(query)["items"] if p["status"].get("phase") == "Running"]
        return [p["metadata"]["name"] for p in found]

    sent = f"{RESOURCES}/namespaces/{space.name}/trainingjobs/by-hand"
    return until(running, lambda: access.get(sent), seconds=180)[0]


def _lives(space: pods.Space, name: str) -> tuple[str, int]:
    pod = space.cluster.access.get(space.path("pods", name))
    restarts = sum(one["restartCount"] for one in pod["status"]["containerStatuses"])
    return pod["metadata"]["uid"], restarts


def test_upgrade_keeps_notebooks_and_jobs_running(
    release: Release, site: Site, space: pods.Space, notebook: str, worker: str
) -> None:
    before = {name: _lives(space, name) for name in (notebook, worker)}
    more = {"name": "vision", "quota": 2, "members": ["admin"]}
    pool = POOL | {"projects": [*POOL["projects"], more]}
    settings = {"hub": {"config": {"JupyterHub": {"active_server_limit": 50}}}}
    release.upgrade(values(pool=pool, **settings))
    access = release.access
    access.wait(f"{RESOURCES}/projects/vision", lambda one: one["spec"]["quota"] == 2, 60)
    assert {name: _lives(space, name) for name in (notebook, worker)} == before
    page = site.client.get("/user/admin/lab")  # through the new Hub
    assert page.status_code == 200, page.text
    assert "<title>JupyterLab</title>" in page.text


def test_uninstall_keeps_homes_jobs_and_running_pods(
    release: Release, space: pods.Space, notebook: str, worker: str, tmp_path: Path
) -> None:
    access = release.access
    release.uninstall()
    claims = access.get(space.path("persistentvolumeclaims"))["items"]
    assert [one["metadata"]["name"] for one in claims]
    jobs = access.get(f"{RESOURCES}/namespaces/{space.name}/trainingjobs")["items"]
    assert [one["metadata"]["name"] for one in jobs] == ["by-hand"]
    for one in jobs:
        assert "finalizers" not in one["metadata"]
    for name in (notebook, worker):
        assert access.get(space.path("pods", name))["status"]["phase"] == "Running"
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    left = [one["metadata"]["name"] for one in access.get(policies)["items"]]
    assert not [one for one in left if one.startswith(release.name)]
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    left = [one["metadata"]["name"] for one in access.get(roles)["items"]]
    assert not [one for one in left if one.startswith(release.name)]
    # A release of the same name finds everything again.
    release.install(values())
    jobs = access.get(f"{RESOURCES}/namespaces/{space.name}/trainingjobs")["items"]
    assert [one["metadata"]["name"] for one in jobs] == ["by-hand"]
    assert access.get(space.path("pods", worker))["status"]["phase"] == "Running"
