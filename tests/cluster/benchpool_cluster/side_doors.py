"""Requests of a work-namespace user against foreign objects, by family."""

from __future__ import annotations

from benchpool_cluster.doors import RESTRICTED
from benchpool_cluster.forgeries import NEW_OBJECTS, NEW_PODS
from benchpool_cluster.requests import Request, at, delete, made, make, merge
from benchpool_scheduler.contract import kubernetes as names

BATCH, NETWORK, POLICY = "batch/v1", "networking.k8s.io/v1", "policy/v1"
RIGHTS, API = "rbac.authorization.k8s.io/v1", names.API_VERSION
IMAGE = [{"op": "replace", "path": "/spec/containers/0/image", "value": "mine"}]
FINALIZER = {"metadata": {"finalizers": ["example.org/mine"]}}
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "mine", "uid": "0-0-0-0"}
LABEL = {"metadata": {"labels": {"team": "mine"}}}
NOTE = {"metadata": {"annotations": {"example.org/mine": "1"}}}
ENDED = {"status": {"phase": "Failed"}}
CONDITION = {
    "type": "Mine",
    "status": "True",
    "reason": "Mine",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def eviction(name: str) -> Request:
    body = made("Eviction", group=POLICY, name=name)
    return Request("POST", at("pods", name, "eviction"), "end", body)


def enter(path: str) -> Request:
    return Request("POST", f"{path}?command=id&stdout=true&container=main", "enter")


PODS = {
    "the image of another's notebook with GPUs": Request(
        "PATCH", at("pods", "{notebook}"), "change", IMAGE, "json"
    ),
    "the image of another's worker": Request(
        "PATCH", at("pods", "{worker}"), "change", IMAGE, "json"
    ),
    "a label on another's worker": merge(at("pods", "{worker}"), LABEL),
    "an annotation on another's notebook": merge(at("pods", "{notebook}"), NOTE),
    "a finalizer on another's worker": merge(at("pods", "{worker}"), FINALIZER),
    "a finalizer on another's notebook": merge(at("pods", "{notebook}"), FINALIZER),
    "another's worker taken from its Job": merge(
        at("pods", "{worker}"), {"metadata": {"ownerReferences": None}}
    ),
    "another's notebook owned by something of mine": merge(
        at("pods", "{notebook}"), {"metadata": {"ownerReferences": [OWNER]}}
    ),
    "a shorter life for another's notebook": merge(
        at("pods", "{notebook}"), {"spec": {"activeDeadlineSeconds": 1}}
    ),
    "the gang of another's worker": merge(
        at("pods", "{worker}"), {"metadata": {"labels": {"batch.kubernetes.io/job-name": "x"}}}
    ),
    "the status of another's worker": merge(at("pods", "{worker}", "status"), ENDED),
    "the status of another's notebook": merge(at("pods", "{notebook}", "status"), ENDED),
    "the size of another's worker": merge(
        at("pods", "{worker}", "resize"),
        {"metadata": {"labels": {"team": "mine"}}},
    ),
    "a container in another's notebook": merge(
        at("pods", "{notebook}", "ephemeralcontainers"),
        {
            "spec": {
                "ephemeralContainers": [
                    {"name": "mine", "image": "mine", "securityContext": RESTRICTED}
                ]
            }
        },
        "ephemeral",
    ),
    "deleting another's worker": delete(at("pods", "{worker}")),
    "deleting another's notebook": delete(at("pods", "{notebook}")),
    "deleting another's notebook at once": delete(
        at("pods", "{notebook}") + "?gracePeriodSeconds=0"
    ),
    "deleting all pods of a job": delete(at("pods") + "?labelSelector=" + names.JOB),
    "evicting another's worker": eviction("{worker}"),
    "evicting another's notebook": eviction("{notebook}"),
    "a command in another's worker": enter(at("pods", "{worker}", "exec")),
    "a command in another's notebook": enter(at("pods", "{notebook}", "exec")),
    "the terminal of another's notebook": enter(at("pods", "{notebook}", "attach")),
    "a port of another's notebook": Request(
        "POST", at("pods", "{notebook}", "portforward") + "?ports=8888", "enter"
    ),
    "another's notebook through the API server": Request(
        "GET", at("pods", "{notebook}", "proxy/"), "enter"
    ),
    "a port of another's worker through the API server": Request(
        "GET", at("pods", "http:{worker}:29500", "proxy/"), "enter"
    ),
    "a gang's Service through the API server": Request(
        "GET", at("services", "http:{attempt}:29500", "proxy/"), "enter"
    ),
    "a node for another's worker": Request(
        "POST",
        at("pods", "{worker}", "binding"),
        "bind",
        made("Binding", name="{worker}") | {"target": {"kind": "Node", "name": "gpu-2"}},
    ),
    "a node for another's worker by the old way": make(
        "bindings",
        made("Binding", name="{worker}") | {"target": {"kind": "Node", "name": "gpu-2"}},
        "bind",
    ),
}

OBJECTS = {
    "deleting another's Job": delete(at("jobs", "{attempt}", group=BATCH)),
    "deleting another's Job without its pods": delete(
        at("jobs", "{attempt}", group=BATCH) + "?propagationPolicy=Orphan"
    ),
    "deleting all Jobs": delete(at("jobs", group=BATCH) + "?labelSelector=" + names.JOB),
    "pausing another's Job": merge(
        at("jobs", "{attempt}", group=BATCH), {"spec": {"suspend": True}}, "change|workload"
    ),
    "ending another's Job by a deadline": merge(
        at("jobs", "{attempt}", group=BATCH),
        {"spec": {"activeDeadlineSeconds": 1}},
        "change|workload",
    ),
    "clearing another's Job away early": merge(
        at("jobs", "{attempt}", group=BATCH),
        {"spec": {"ttlSecondsAfterFinished": 0}},
        "change|workload",
    ),
    "a finalizer on another's Job": merge(at("jobs", "{attempt}", group=BATCH), FINALIZER),
    "a label on another's Job": merge(at("jobs", "{attempt}", group=BATCH), LABEL),
    "the status of another's Job": merge(
        at("jobs", "{attempt}", "status", BATCH), {"status": {"active": 7}}
    ),
    "where another's workers go": merge(
        at("jobs", "{attempt}", group=BATCH),
        {"metadata": {"annotations": {"benchpool.io/placement": "gpu-2="}}},
        "change|keys",
    ),
    "deleting a gang's Service": delete(at("services", "{attempt}")),
    "whom a gang's Service names": merge(
        at("services", "{attempt}"), {"spec": {"selector": {"app": "mine"}}}
    ),
    "a finalizer on a gang's Service": merge(at("services", "{attempt}"), FINALIZER),
    "the status of a gang's Service": merge(
        at("services", "{attempt}", "status"),
        {"status": {"conditions": [CONDITION]}},
    ),
    "deleting a gang's NetworkPolicy": delete(at("networkpolicies", "{attempt}", group=NETWORK)),
    "whom a gang lets in": merge(
        at("networkpolicies", "{attempt}", group=NETWORK), {"spec": {"ingress": [{}]}}
    ),
    "deleting the release's NetworkPolicy": delete(
        at("networkpolicies", "benchpool-default-deny", group=NETWORK)
    ),
    "whom workers let in": merge(
        at("networkpolicies", "benchpool-workers", group=NETWORK), {"spec": {"ingress": [{}]}}
    ),
    "deleting an attempt's Secret": delete(at("secrets", "{attempt}")),
    "what an attempt's Secret says": merge(at("secrets", "{attempt}"), {"data": {"x": "eA=="}}),
    "an attempt's Secret kept for ever": merge(at("secrets", "{attempt}"), FINALIZER),
    "deleting another's home": delete(at("persistentvolumeclaims", "{home}")),
    "whose a home is": merge(
        at("persistentvolumeclaims", "{home}"),
        {"metadata": {"annotations": {"hub.jupyter.org/username": "mallory"}}},
    ),
    "a finalizer on another's home": merge(at("persistentvolumeclaims", "{home}"), FINALIZER),
    "the status of another's home": merge(
        at("persistentvolumeclaims", "{home}", "status"), {"status": {"phase": "Lost"}}
    ),
    "another's home owned by something of mine": merge(
        at("persistentvolumeclaims", "{home}"), {"metadata": {"ownerReferences": [OWNER]}}
    ),
    "deleting the account of users' pods": delete(at("serviceaccounts", "benchpool-user")),
    "the account of users' pods": merge(
        at("serviceaccounts", "benchpool-user"), {"imagePullSecrets": [{"name": "mine"}]}
    ),
    "a token of the account of users' pods": Request(
        "POST",
        at("serviceaccounts", "benchpool-user", "token"),
        "bind",
        made("TokenRequest", {}, "authentication.k8s.io/v1", name="benchpool-user"),
    ),
    "deleting the scheduler's rights": delete(
        at("rolebindings", "benchpool-scheduler", group=RIGHTS)
    ),
    "the scheduler's rights": merge(
        at("roles", "benchpool-scheduler", group=RIGHTS), {"rules": []}
    ),
    "deleting another's TrainingJob": delete(at("trainingjobs", "susans", group=API), "user"),
    "deleting all TrainingJobs": delete(at("trainingjobs", group=API), "user"),
    "pausing another's TrainingJob": merge(
        at("trainingjobs", "susans", group=API), {"spec": {"suspend": True}}, "user"
    ),
    "a finalizer on another's TrainingJob": merge(
        at("trainingjobs", "susans", group=API), FINALIZER, "user"
    ),
    "the workers of another's TrainingJob": merge(
        at("trainingjobs", "susans", "scale", API), {"spec": {"replicas": 4}}, "scale"
    ),
    "the status of another's TrainingJob": merge(
        at("trainingjobs", "susans", "status", API), {"status": {"state": "failed"}}, "status"
    ),
    "the namespace of all": delete("/api/v1/namespaces/{space}", "managed"),
}


REQUESTS = {
    f"{family}: {name}": request
    for family, table in {
        "another's pods": PODS,
        "another's objects": OBJECTS,
        "a pod with": NEW_PODS,
        "something new": NEW_OBJECTS,
    }.items()
    for name, request in table.items()
}

BY_RIGHT = frozenset(
    name
    for name, one in REQUESTS.items()
    if one.rule in ("user", "scale", "lease", "status") and API in one.path
)
"""Requests allowed to a user with every right in the namespace, which includes act-for-users."""
