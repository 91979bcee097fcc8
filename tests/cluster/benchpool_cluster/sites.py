"""A site in use: an installed release, its users, and their work according to the API server."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from benchpool_cluster import pods
from benchpool_cluster.access import Access
from benchpool_cluster.cluster import Cluster
from benchpool_cluster.processes import NotReady, in_time
from benchpool_cluster.releases import Release
from benchpool_cluster.witness import Object
from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import ENDED
from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.errors import NotFound, Refused

SERVICE = "/services/benchpool"
JOBS = f"/apis/{names.API_VERSION}"
PATIENCE_S = 60.0
"""Time that a client retries while the service is down, in seconds."""


@dataclass
class Site:
    """An installed release, used through the proxy as its users do.

    Attributes:
        cluster: Cluster of the release; ``cluster.processes`` freezes and kills parts of it.
        url: Address of the proxy; it stays when the proxy's pod is replaced.
    """

    cluster: Cluster
    release: Release
    url: str
    _tokens: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, cluster: Cluster, release: Release) -> Site:
        """Return the site of an installed release."""
        path = f"/api/v1/namespaces/{release.name}/services/{release.name}-proxy-public"
        spec = release.access.get(path)["spec"]
        return cls(cluster, release, f"http://{spec['clusterIP']}:{spec['ports'][0]['port']}")

    @property
    def access(self) -> Access:
        """Return the administrator's access to the API server."""
        return self.release.access

    @property
    def namespace(self) -> str:
        """Return the namespace of Hub, proxy and scheduler."""
        return self.release.name

    @property
    def workspace(self) -> str:
        """Return the namespace of notebooks and jobs."""
        return self.release.workspace

    @property
    def space(self) -> pods.Space:
        """Return the namespace of notebooks and jobs with operations on its pods."""
        return pods.Space(self.cluster, self.workspace)

    # ------------------------------------------------------------------ users

    def password(self, user: str) -> str:
        """Return the password of a user; the administrator's is different."""
        return self.release.secret("admin-password" if user == "admin" else "user-password")

    def hub(self) -> httpx.Client:
        """Return an administrator's client of the Hub's REST API, through the proxy."""
        headers = {"Authorization": f"token {self.release.secret('hub-token')}"}
        base = f"{self.url}/hub/api"
        return httpx.Client(base_url=base, headers=headers, timeout=30, trust_env=False)

    def token(self, user: str) -> str:
        """Return a token with all of a user's rights; the user is created if missing."""
        if user not in self._tokens:
            with self.hub() as hub:
                made = hub.post(f"/users/{user}", json={"admin": user == "admin"})
                assert made.status_code in (201, 409), made.text
                answer = hub.post(f"/users/{user}/tokens", json={"note": "tests"})
            assert answer.status_code in (200, 201), answer.text
            self._tokens[user] = str(answer.json()["token"])
        return self._tokens[user]

    def client(self, user: str, patience_s: float = PATIENCE_S) -> Client:
        """Return the product's own client for a user, through the proxy."""
        credentials = Credentials(f"{self.url}{SERVICE}", self.token(user))
        return Client(credentials, patience_s=patience_s, keyed_patience_s=patience_s)

    def ready(self) -> bool:
        """Return whether Hub and scheduler answer through the proxy."""
        try:
            health = httpx.get(f"{self.url}{SERVICE}/api/v1/health", timeout=30, trust_env=False)
            hub = httpx.get(f"{self.url}/hub/health", timeout=30, trust_env=False)
        except httpx.HTTPError:
            return False
        return health.text == '{"ok":true}' and hub.is_success

    def wait_ready(self, seconds: float = 120) -> None:
        """Wait until Hub and scheduler answer through the proxy."""
        if not in_time(self.ready, seconds):
            raise NotReady(f"{self.url} does not answer for hub and scheduler in {seconds:g} s")

    # ------------------------------------------------------------------ notebooks

    def give_home(self, user: str, node: str) -> None:
        """Create a user's home on a node, as if it had long been in use there."""
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": f"home-{user}",
                "annotations": {
                    "hub.jupyter.org/username": user,
                    "volume.kubernetes.io/selected-node": node,
                },
            },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        self.space.create("persistentvolumeclaims", claim)
        path = self.space.path("persistentvolumeclaims", f"home-{user}")
        self.access.wait(path, lambda one: one["status"].get("phase") == "Bound")

    def start_notebook(self, user: str, **options: Any) -> Object:
        """Start a user's server with the form's options, e.g. ``gpus=1``; return its ready pod."""
        self.token(user)
        with self.hub() as hub:
            answer = hub.post(f"/users/{user}/server", json=options)
            assert answer.status_code in (201, 202), answer.text

            def is_ready() -> bool:
                return bool(hub.get(f"/users/{user}").json()["servers"].get("", {}).get("ready"))

            if not in_time(is_ready, 240):
                raise NotReady(f"{user}'s server: {hub.get(f'/users/{user}').text}")
        return self.notebook(user)

    def stop_notebook(self, user: str) -> None:
        """Stop a user's server, and wait until its pod is gone and the Hub has noticed."""
        with self.hub() as hub:
            hub.delete(f"/users/{user}/server")
            self.access.wait_gone(self.space.path("pods", f"jupyter-{user}"), 120)
            if not in_time(lambda: not hub.get(f"/users/{user}").json()["servers"], 60):
                raise NotReady(f"{user}'s server stays: {hub.get(f'/users/{user}').text}")

    def notebook(self, user: str) -> Object:
        """Return the pod of a user's server."""
        return self.access.get(self.space.path("pods", f"jupyter-{user}"))

    def write_file(self, user: str, path: str, text: str) -> None:
        """Write a file to a user's home, as an upload in the browser does."""
        body = {"type": "file", "format": "text", "content": text}
        self._contents("PUT", user, path, body)

    def read_file(self, user: str, path: str) -> Object:
        """Return a file or a folder of a user's home as a Jupyter contents model."""
        found: Object = self._contents("GET", user, path).json()
        return found

    def _contents(
        self, method: str, user: str, path: str, body: Object | None = None
    ) -> httpx.Response:
        url = f"{self.url}/user/{user}/api/contents/{quote(path)}"
        headers = {"Authorization": f"token {self.token(user)}"}
        answer = httpx.request(method, url, json=body, headers=headers, timeout=30, trust_env=False)
        return answer.raise_for_status()

    # ------------------------------------------------------------------ jobs

    @property
    def jobs_path(self) -> str:
        """Return the API path of all jobs."""
        return f"{JOBS}/namespaces/{self.workspace}/trainingjobs"

    def job(self, id_: str) -> Object:
        """Return a job from the API server."""
        return self.access.get(f"{self.jobs_path}/{id_}")

    def jobs(self) -> list[Object]:
        """Return all jobs from the API server."""
        return list(self.access.get(self.jobs_path)["items"])

    def job_named(self, name: str) -> Object:
        """Return the newest job of a name."""
        found = [one for one in self.jobs() if one["spec"].get("name") == name]
        assert found, f"no job is named {name}"
        return max(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))

    def wait_job(self, id_: str, state: str, seconds: float = 120) -> Object:
        """Wait until a job has this state in the API server."""
        return self.access.wait(
            f"{self.jobs_path}/{id_}", lambda one: state_of(one) == state, seconds
        )

    def workers(self, id_: str, attempt: int | None = None) -> list[Object]:
        """Return the existing pods of a job's workers, by index."""
        chosen = f"{names.JOB}={id_}" + (f",{names.ATTEMPT}={attempt}" if attempt else "")
        found = self.access.get(f"{self.space.path('pods')}?labelSelector={quote(chosen)}")
        return sorted(found["items"], key=index_of)

    def clear(self) -> None:
        """Cancel every job and stop every server, and wait until their pods are gone."""
        with self.client("admin") as admin:
            for job in self.jobs():
                with suppress(NotFound, Refused):  # already ended
                    if state_of(job) not in ENDED:
                        admin.cancel(job["metadata"]["name"], "the next test begins")
        with self.hub() as hub:
            for user in hub.get("/users").json():
                if user.get("server") or user.get("pending"):
                    hub.delete(f"/users/{user['name']}/server")
        ours = quote(f"{names.ROLE} in ({names.ROLE_WORKER},{names.ROLE_NOTEBOOK})")
        path = f"{self.space.path('pods')}?labelSelector={ours}"

        def alive() -> list[str]:
            ended = ("Succeeded", "Failed")
            found = [p for p in self.access.get(path)["items"] if p["status"]["phase"] not in ended]
            return [one["metadata"]["name"] for one in found]

        if not in_time(lambda: not alive(), 120):
            raise NotReady(f"these pods are still there after 120 s: {', '.join(alive())}")
        with self.hub() as hub:
            # The Hub may notice it a little later, and starts no server during a stop.
            if not in_time(lambda: not any(u["servers"] for u in hub.get("/users").json()), 60):
                raise NotReady(f"servers stay: {hub.get('/users').text}")


def state_of(job: Object) -> str:
    """Return the state of a job, or an empty text before it has one."""
    return str(job.get("status", {}).get("state", ""))


def index_of(pod: Object) -> int:
    """Return a pod's index among its job's workers."""
    return int(pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"])


def gpus_of(pod: Object) -> int:
    """Return the number of GPUs that a pod holds."""
    limits = (one.get("resources", {}).get("limits", {}) for one in pod["spec"]["containers"])
    return sum(int(one.get(names.GPU_RESOURCE, 0)) for one in limits)


def lives(pod: Object) -> tuple[str, int]:
    """Return a pod's UID and its number of container restarts; both unchanged means untouched."""
    restarts = sum(one["restartCount"] for one in pod["status"]["containerStatuses"])
    return pod["metadata"]["uid"], restarts
