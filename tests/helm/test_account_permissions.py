"""Exact rights of each account, as the API server reports them."""

from __future__ import annotations

from typing import Any

import pytest

from benchpool_cluster.chart import Caller, Site

pytestmark = pytest.mark.kubernetes

READ = frozenset({"get", "list", "watch"})
WRITE = frozenset({"create", "update", "patch", "delete"})

EVERYWHERE = {
    "scheduler": {
        "nodes": READ,
        "pods": READ,
        "persistentvolumes": READ,
        "persistentvolumeclaims": READ,
        "resourceclaims.resource.k8s.io": READ,
        "projects.benchpool.io": READ | WRITE,
        "nodepools.benchpool.io": READ | WRITE,
        "poolsettings.benchpool.io": READ | WRITE,
        "projects/status.benchpool.io": frozenset({"get", "update", "patch"}),
        "nodepools/status.benchpool.io": frozenset({"get", "update", "patch"}),
        "poolsettings/status.benchpool.io": frozenset({"get", "update", "patch"}),
    },
    "hub": {},
    "proxy": {},
}
IN_WORKSPACE = {
    "scheduler": {
        "pods": READ | {"patch", "delete"},
        "jobs.batch": READ | {"create", "patch", "delete", "deletecollection"},
        "secrets": frozenset({"create", "delete"}),
        "services": frozenset({"create"}),
        "networkpolicies.networking.k8s.io": frozenset({"create"}),
        "events": frozenset({"create", "list"}),
        "trainingjobs.benchpool.io": READ | WRITE | {"act-for-users"},
        "buildleases.benchpool.io": READ | WRITE,
        "trainingjobs/status.benchpool.io": frozenset({"get", "update", "patch"}),
        "buildleases/status.benchpool.io": frozenset({"get", "update", "patch"}),
    },
    "hub": {
        "pods": READ | {"create", "delete"},
        "persistentvolumeclaims": READ | {"create", "delete"},
        "events": READ,
    },
    "proxy": {},
}
IN_RELEASE = {
    "scheduler": {
        "leases.coordination.k8s.io": frozenset({"create"}),
        "leases.coordination.k8s.io benchpool-scheduler": frozenset({"get", "update", "patch"}),
        # To report the time of the last copy and the command for one; not to create one (0048).
        "cronjobs.batch benchpool-copy-hub": frozenset({"get"}),
        "cronjobs.batch benchpool-copy-pool": frozenset({"get"}),
    },
    "hub": {},
    "proxy": {},
}
PUBLIC = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""Reviews about itself that Kubernetes allows to every account."""


def rights(caller: Caller, namespace: str) -> dict[str, frozenset[str]]:
    """Return the verbs in a namespace by resource.

    The key includes the name if a right holds for one name only.
    """
    ask = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    answer = caller.call("POST", path, ask)
    assert answer.status_code == 201, answer.text
    found: dict[str, frozenset[str]] = {}
    rules: list[dict[str, Any]] = answer.json()["status"]["resourceRules"]
    for rule in rules:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                if resource in PUBLIC:
                    continue
                kind = f"{resource}.{group}".rstrip(".")
                for name in rule.get("resourceNames") or [""]:
                    key = f"{kind} {name}".rstrip()
                    found[key] = found.get(key, frozenset()) | frozenset(rule["verbs"])
    return found


def together(
    one: dict[str, frozenset[str]], two: dict[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """Return the union of both sets of rights."""
    return {key: one.get(key, frozenset()) | two.get(key, frozenset()) for key in {*one, *two}}


@pytest.mark.parametrize("part", EVERYWHERE)
def test_accounts_have_exactly_expected_rights(site: Site, part: str) -> None:
    caller = site.account(part)
    everywhere = EVERYWHERE[part]
    assert rights(caller, "default") == everywhere
    assert rights(caller, site.workspace) == together(everywhere, IN_WORKSPACE[part])
    assert rights(caller, site.rendered.namespace) == together(everywhere, IN_RELEASE[part])


def test_user_pods_have_no_rights(site: Site) -> None:
    for name in ("benchpool-user", "default"):
        user = site.account_in(site.workspace, name)
        assert rights(user, site.workspace) == {}
        assert rights(user, site.rendered.namespace) == {}


@pytest.mark.parametrize("part", ["scheduler", "hub"])
def test_accounts_cannot_escalate(site: Site, part: str) -> None:
    caller = site.account(part)
    for namespace in ("default", site.workspace, site.rendered.namespace):
        held = rights(caller, namespace)
        assert not {verb for verbs in held.values() for verb in verbs} & {
            "*",
            "escalate",
            "bind",
            "impersonate",
        }
        assert not [key for key in held if "rbac" in key or "serviceaccounts" in key or "*" in key]


def test_user_roles_grant_expected_rights(site: Site) -> None:
    viewer, editor = site.person("viewer", "view"), site.person("editor", "edit")
    assert rights(viewer, site.workspace)["trainingjobs.benchpool.io"] == READ
    edits = rights(editor, site.workspace)["trainingjobs.benchpool.io"]
    assert edits == READ | WRITE
    assert rights(editor, site.workspace)["buildleases.benchpool.io"] == READ


def test_scheduler_cannot_read_secrets(site: Site) -> None:
    path = f"/api/v1/namespaces/{site.workspace}/secrets"
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "somebodys"}}
    site.access.create(path, {**body, "stringData": {"key": "hidden"}})
    scheduler = site.account("scheduler")
    assert scheduler.call("GET", f"{path}/somebodys").status_code == 403
    assert scheduler.call("PATCH", f"{path}/somebodys", {}, "merge").status_code == 403
    again = scheduler.call("POST", path, body)
    assert (again.status_code, again.json()["reason"]) == (409, "AlreadyExists")
    gone = scheduler.call("DELETE", f"{path}/somebodys")
    assert (gone.status_code, gone.json()["kind"]) == (200, "Status")
    assert "hidden" not in again.text + gone.text
