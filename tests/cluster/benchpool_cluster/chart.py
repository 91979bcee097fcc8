"""The chart for tests: rendered offline, and its rules applied to a cluster.

Helm's own engine renders it as a Python package, without a binary or a cluster. Lookups of the
chart on a cluster then find nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml
from helm_python import Chart

from benchpool_cluster.access import PATCHES, Access
from benchpool_cluster.processes import NotReady, in_time

FOLDER = Path(__file__).resolve().parents[3] / "helm" / "benchpool"

Manifest = dict[str, Any]

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""YAML loader, eight times as fast if PyYAML was built with its C library."""

# Collections of the kinds that are rules and not workloads, in the order of their use.
RULES = {
    "Namespace": ("/api/v1", "namespaces"),
    "CustomResourceDefinition": ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    "ServiceAccount": ("/api/v1", "serviceaccounts"),
    "Role": ("/apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": ("/apis/rbac.authorization.k8s.io/v1", "clusterroles"),
    "ClusterRoleBinding": ("/apis/rbac.authorization.k8s.io/v1", "clusterrolebindings"),
    "PriorityClass": ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
    "ValidatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicies",
    ),
    "ValidatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingadmissionpolicybindings",
    ),
    "MutatingAdmissionPolicy": (
        "/apis/admissionregistration.k8s.io/v1beta1",
        "mutatingadmissionpolicies",
    ),
    "MutatingAdmissionPolicyBinding": (
        "/apis/admissionregistration.k8s.io/v1beta1",
        "mutatingadmissionpolicybindings",
    ),
    "NetworkPolicy": ("/apis/networking.k8s.io/v1", "networkpolicies"),
}
NAMESPACED = {"ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A rendered release of the chart."""

    release: str
    namespace: str
    objects: tuple[Manifest, ...]
    notes: str

    def of(self, kind: str) -> list[Manifest]:
        """Return all objects of a kind."""
        return [one for one in self.objects if one["kind"] == kind]

    def the(self, kind: str, name: str) -> Manifest:
        """Return the only object of a kind and name."""
        (found,) = [one for one in self.of(kind) if one["metadata"]["name"] == name]
        return found

    @property
    def workspace(self) -> str:
        """Return the namespace of notebooks and jobs."""
        (found,) = {one["metadata"]["namespace"] for one in self.of("ResourceQuota")} or {
            one["metadata"]["namespace"]
            for one in self.of("ServiceAccount")
            if one["metadata"]["name"].endswith("-user")
        }
        return str(found)


def render(
    values: Mapping[str, Any] | None = None,
    *,
    release: str = "benchpool",
    namespace: str = "benchpool",
) -> Rendered:
    """Render the chart.

    Raises:
        helm_python.HelmError: The values do not fit the chart's schema, or a template fails.
    """
    with Chart.load(FOLDER) as chart:
        texts = chart.render(values=dict(values or {}), name=release, namespace=namespace)
    objects, notes = [], ""
    for name, text in sorted(texts.items()):
        if name.endswith("NOTES.txt"):
            notes = text
        else:
            objects += [one for one in yaml.load_all(text, LOADER) if one]
    for one in objects:
        if one["kind"] not in RULES or one["kind"] in NAMESPACED:
            one["metadata"].setdefault("namespace", namespace)
    return Rendered(release, namespace, tuple(objects), notes)


def place(manifest: Manifest) -> str:
    """Return the API path of an object that is a rule."""
    prefix, plural = RULES[manifest["kind"]]
    name, namespace = manifest["metadata"]["name"], manifest["metadata"].get("namespace")
    middle = f"/namespaces/{namespace}" if manifest["kind"] in NAMESPACED else ""
    return f"{prefix}{middle}/{plural}/{name}"


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller of the API server, impersonated by the administrator."""

    access: Access
    user: str
    groups: tuple[str, ...] = ()

    def call(self, method: str, path: str, body: object = None, patch: str = "") -> httpx.Response:
        """Send one request; ``patch`` is the kind of patch: merge, json or apply."""
        headers = [("Impersonate-User", self.user)]
        headers += [("Impersonate-Group", one) for one in (*self.groups, "system:authenticated")]
        kind = PATCHES[patch] if patch else "application/json"
        with self.access.client() as client:
            given = [*headers, ("Content-Type", kind)]
            return client.request(method, path, json=body, headers=given)


@dataclass(frozen=True, slots=True)
class Site:
    """A cluster with the chart's rules and without its workloads."""

    access: Access
    rendered: Rendered

    @property
    def workspace(self) -> str:
        """Return the namespace of notebooks and jobs."""
        return self.rendered.workspace

    def account(self, part: str) -> Caller:
        """Return the account of ``scheduler`` or ``hub``."""
        namespace = self.rendered.namespace
        return service_account(self.access, namespace, f"{self.rendered.release}-{part}")

    def account_in(self, namespace: str, name: str) -> Caller:
        """Return any service account."""
        return service_account(self.access, namespace, name)

    def controller(self, name: str) -> Caller:
        """Return a controller of the cluster, for example ``job-controller``."""
        return service_account(self.access, "kube-system", name)

    def person(self, name: str, *roles: str) -> Caller:
        """Return a user with cluster roles in the work namespace."""
        group = "/apis/rbac.authorization.k8s.io/v1"
        for role in roles:
            self.access.apply(
                f"{group}/namespaces/{self.workspace}/rolebindings/{name}.{role}",
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "RoleBinding",
                    "metadata": {"name": f"{name}.{role}"},
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "ClusterRole",
                        "name": role,
                    },
                    "subjects": [
                        {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
                    ],
                },
            )
        return Caller(self.access, name)


def service_account(access: Access, namespace: str, name: str) -> Caller:
    """Return a service account under its name at the API server."""
    user = f"system:serviceaccount:{namespace}:{name}"
    return Caller(access, user, ("system:serviceaccounts", f"system:serviceaccounts:{namespace}"))


def put_rules(access: Access, rendered: Rendered, kinds: Sequence[str] = tuple(RULES)) -> Site:
    """Apply the chart's rules to a cluster and wait until they are in force."""
    access.apply(
        f"/api/v1/namespaces/{rendered.namespace}",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": rendered.namespace,
                "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
            },
        },
    )
    for kind in RULES:
        if kind in kinds:
            for one in rendered.of(kind):
                access.apply(place(one), one)
    site = Site(access, rendered)
    if "ValidatingAdmissionPolicyBinding" in kinds and not in_time(lambda: _holds(site), 120):
        raise NotReady("the chart's policies do not hold after 120 s")
    return site


def _holds(site: Site) -> bool:
    """Return whether the last binding, and so every earlier binding, is in force."""
    path = f"/apis/apps/v1/namespaces/{site.workspace}/deployments?dryRun=All"
    limits = {"limits": {"nvidia.com/gpu": "1"}}
    pod = {"containers": [{"name": "probe", "image": "probe", "resources": limits}]}
    probe = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "probe"},
        "spec": {
            "selector": {"matchLabels": {"name": "probe"}},
            "template": {"metadata": {"labels": {"name": "probe"}}, "spec": pod},
        },
    }
    return "[workload]" in site.access.call("POST", path, probe).text
