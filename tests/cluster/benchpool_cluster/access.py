"""Access to an API server: a kubeconfig, a token, and plain calls over HTTP.

No client library is used, so that no test depends on a library's reading of an answer.
"""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from benchpool_cluster.processes import NotReady, in_time

PATCHES = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}


@dataclass(frozen=True, slots=True)
class Access:
    """An API server and the identity of the caller."""

    server: str
    token: str
    authority: Path
    kubeconfig: Path
    certificate: tuple[Path, Path] | None = None
    """Client certificate and its key, for a caller without a token."""

    def write_kubeconfig(self) -> None:
        """Write the kubeconfig, readable for this user only."""
        text = json.dumps(kubeconfig(self.server, self.token, self.authority), indent=1)
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(text)

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield a connection with this caller's identity."""
        trust = ssl.create_default_context(cafile=str(self.authority))
        if self.certificate:
            trust.load_cert_chain(*self.certificate)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        with httpx.Client(
            base_url=self.server, headers=headers, verify=trust, timeout=30, trust_env=False
        ) as client:
            yield client

    def call(self, method: str, path: str, body: object = None, patch: str = "") -> httpx.Response:
        """Send one request; ``patch`` is the kind of patch: merge, json or apply."""
        kind = PATCHES[patch] if patch else "application/json"
        content = None if body is None else json.dumps(body)
        with self.client() as client:
            return client.request(
                method, path, content=content, headers={"Content-Type": kind} if content else {}
            )

    def get(self, path: str) -> dict[str, Any]:
        """Return an object or a list; raise if it does not exist."""
        return self._done(self.call("GET", path))

    def find(self, path: str) -> dict[str, Any] | None:
        """Return an object, or None if it does not exist."""
        answer = self.call("GET", path)
        return None if answer.status_code == 404 else self._done(answer)

    def create(self, path: str, body: object) -> dict[str, Any]:
        """Create an object in the collection at ``path``."""
        return self._done(self.call("POST", path, body))

    def apply(self, path: str, body: object) -> dict[str, Any]:
        """Create or update the object at ``path``."""
        where = f"{path}?fieldManager=tests&force=true"
        return self._done(self.call("PATCH", where, body, patch="apply"))

    def patch(self, path: str, body: object, kind: str = "merge") -> dict[str, Any]:
        """Change an object."""
        return self._done(self.call("PATCH", path, body, patch=kind))

    def delete(self, path: str, grace_seconds: int | None = None) -> None:
        """Delete an object; a missing object is no error."""
        query = "" if grace_seconds is None else f"?gracePeriodSeconds={grace_seconds}"
        answer = self.call("DELETE", path + query)
        if answer.status_code != 404:
            self._done(answer)

    def wait(
        self, path: str, holds: Callable[[dict[str, Any]], bool], seconds: float = 60
    ) -> dict[str, Any]:
        """Read an object until the condition holds, and return it."""
        seen: list[dict[str, Any] | None] = [None]

        def look() -> bool:
            seen[0] = self.find(path)
            return seen[0] is not None and holds(seen[0])

        if not in_time(look, seconds):
            raise NotReady(f"{path} did not come to be as expected in {seconds:g} s: {seen[0]}")
        assert seen[0] is not None
        return seen[0]

    def wait_gone(self, path: str, seconds: float = 60) -> None:
        """Wait until an object no longer exists."""
        if not in_time(lambda: self.find(path) is None, seconds):
            raise NotReady(f"{path} is still there after {seconds:g} s")

    def service_account(
        self, namespace: str, name: str, *, seconds: int = 3600, cluster_role: str = ""
    ) -> Access:
        """Return access as a service account, created if missing.

        Its kubeconfig is written beside the administrator's.
        """
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        about = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
        self.apply(f"{accounts}/{name}", about)
        if cluster_role:
            self._bind(namespace, name, cluster_role)
        request = {"spec": {"expirationSeconds": seconds}}
        token = self.create(f"{accounts}/{name}/token", request)["status"]["token"]
        file = self.kubeconfig.with_name(f"{namespace}.{name}.kubeconfig")
        access = Access(self.server, token, self.authority, file)
        access.write_kubeconfig()
        return access

    def _bind(self, namespace: str, name: str, cluster_role: str) -> None:
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{namespace}.{name}.{cluster_role}"},
            "roleRef": role | {"name": cluster_role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
        }
        group = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
        self.apply(f"{group}/{namespace}.{name}.{cluster_role}", binding)

    @staticmethod
    def _done(answer: httpx.Response) -> dict[str, Any]:
        if answer.is_error:
            raise httpx.HTTPStatusError(
                f"{answer.request.method} {answer.request.url.path}: "
                f"{answer.status_code} {answer.text[:2000]}",
                request=answer.request,
                response=answer,
            )
        done: dict[str, Any] = answer.json()
        return done


def kubeconfig(server: str, token: str, authority: Path) -> dict[str, Any]:
    """Return a kubeconfig with one cluster and one user."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "tests",
                "cluster": {"server": server, "certificate-authority": str(authority)},
            }
        ],
        "users": [{"name": "caller", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "caller"}}],
        "current-context": "tests",
    }


def from_kubeconfig(file: Path) -> Access:
    """Return access as the current user of a kubeconfig, by token or client certificate."""
    config = yaml.safe_load(file.read_text())
    pick = {kind: {one["name"]: one for one in config[kind]} for kind in ("contexts", "clusters")}
    context = pick["contexts"][config["current-context"]]["context"]
    place = pick["clusters"][context["cluster"]]["cluster"]
    user = {one["name"]: one for one in config["users"]}[context["user"]]["user"]
    authority = _kept(place, "certificate-authority")
    assert authority, "the kubeconfig names no certificate authority"
    certificate, key = (_kept(user, f"client-{part}") for part in ("certificate", "key"))
    pair = (certificate, key) if certificate and key else None
    return Access(place["server"], user.get("token", ""), authority, file, pair)


def _kept(about: dict[str, str], key: str) -> Path | None:
    """Return the file named by an entry, or a file with the entry's data, or None."""
    if key in about:
        return Path(about[key])
    if f"{key}-data" not in about:
        return None
    file = Path(tempfile.mkdtemp(prefix="benchpool-kubeconfig-")) / key
    file.touch(0o600)
    file.write_bytes(base64.b64decode(about[f"{key}-data"]))
    return file
