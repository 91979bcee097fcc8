"""Manifests for the API server, from a launch: pure.

An attempt has one Indexed Job and one Secret with the configuration of its agents. A gang also has
a headless Service that names each worker, and a NetworkPolicy that connects the workers. A replica
of a service has a NetworkPolicy that lets the scheduler reach its port. Pods start with a closed
scheduling gate and meet the *restricted* pod security standard. ``backoffLimitPerIndex: 0``: no
worker is replaced, and the end of one worker ends no other. The scheduler alone decides which
worker stops and when, never the Job controller.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from typing import Any

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime import Launch
from benchpool_scheduler.runtime.kubernetes.agent import paths
from benchpool_scheduler.runtime.kubernetes.cluster_settings import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.cluster_views import WORKER, PodView
from benchpool_scheduler.runtime.kubernetes.written_amounts import cores, gibibytes

Manifest = dict[str, Any]

PLACEMENT = f"{names.GROUP}/placement"
"""Annotation of a Job: node and slots of each worker, from which a restart recovers them."""

MARGIN_S = 30
"""Time beyond the job's grace period for the agent to send the remaining data, in seconds."""

ANNOTATION_BYTES = 256
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def job(launch: Launch, places_: Sequence[str], settings: ClusterSettings, epoch: int) -> Manifest:
    """Return the Job of an attempt.

    Args:
        launch: Launch of any of its workers; they differ in their placements only.
        places_: Results of ``placement`` for all workers.
    """
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    count = len(launch.nodes)
    labels = labels_of(launch)
    annotations = annotations_of(launch, epoch)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": annotations | {PLACEMENT: ";".join(places_)},
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": count,
            "parallelism": count,
            "backoffLimitPerIndex": 0,
            "podReplacementPolicy": "Failed",
            "ttlSecondsAfterFinished": 7 * 24 * 3600,
            **settings.workload_hints.job_fields(count),
            "template": {
                "metadata": {"labels": labels, "annotations": annotations},
                "spec": pod_spec(launch, name, settings),
            },
        },
    }


def labels_of(launch: Launch) -> dict[str, str]:
    """Return the labels of all objects of an attempt: IDs only."""
    return {
        names.ROLE: names.ROLE_WORKER,
        names.JOB: launch.worker.job,
        names.ATTEMPT: str(launch.worker.attempt),
    }


def annotations_of(launch: Launch, epoch: int) -> dict[str, str]:
    """Return annotations for readers: any text, truncated."""
    return {
        names.USER: launch.env.get("BENCHPOOL_USER", "")[:ANNOTATION_BYTES],
        names.PROJECT: launch.env.get("BENCHPOOL_PROJECT", "")[:ANNOTATION_BYTES],
        names.EPOCH: str(epoch),
    }


def pod_spec(launch: Launch, name: str, settings: ClusterSettings) -> Manifest:
    """Return the spec of a worker's pod."""
    user, group = settings.run_as
    spec: Manifest = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": names.ADMISSION_GATE}],
        "subdomain": name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": math.ceil(launch.grace_s) + MARGIN_S,
        "tolerations": [dict(one) for one in settings.tolerations],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": group,
            "fsGroup": group,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [_agent(settings)],
        "containers": [_worker(launch, settings)],
        "volumes": _volumes(launch, name, settings),
    }
    if settings.priority_class:
        spec["priorityClassName"] = settings.priority_class
    if settings.pull_secrets:
        spec["imagePullSecrets"] = [{"name": one} for one in settings.pull_secrets]
    return spec


CONFINED: Manifest = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
SMALL = {"cpu": "100m", "memory": "64Mi"}


def _agent(settings: ClusterSettings) -> Manifest:
    return {
        "name": "agent",
        "image": settings.agent_image,
        "imagePullPolicy": settings.pull_policy,
        "command": ["cp", settings.agent_path, paths.AGENT],
        "securityContext": CONFINED,
        "resources": {"requests": SMALL, "limits": {"memory": "256Mi"}},
        "volumeMounts": [{"name": "scratch", "mountPath": paths.ROOT}],
    }


def _worker(launch: Launch, settings: ClusterSettings) -> Manifest:
    mounts: list[Manifest] = [
        {"name": "scratch", "mountPath": paths.ROOT},
        {"name": "order", "mountPath": paths.CONFIG_FOLDER, "readOnly": True},
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 (a mount in the pod)
    ]
    if launch.claim is not None:
        mounts.append({"name": "home", "mountPath": launch.claim_path})
    return {
        "name": WORKER,
        "image": launch.image or settings.image,
        "imagePullPolicy": settings.pull_policy,
        # -I isolates the agent from the Python set-up of the image and of the user.
        "command": ["python3", "-I", paths.AGENT],
        "securityContext": CONFINED,
        "resources": resources(launch, settings),
        "volumeMounts": mounts,
    }


def resources(launch: Launch, settings: ClusterSettings) -> Manifest:
    """Return a worker's requests and limits.

    GPUs and memory are limits too, processor cores only if the site sets a limit.
    """
    gpus, cpus, memory = len(launch.gpus), launch.cpus, launch.memory_gib
    asked: dict[str, str] = {}
    limits: dict[str, str] = {}
    if cpus:
        asked["cpu"] = cores(cpus)
        if settings.cpu_limit:
            limits["cpu"] = cores(cpus * max(1.0, settings.cpu_limit))
    if memory:
        limits["memory"] = gibibytes(memory)
    if gpus:
        limits[resource_of(launch.gpus)] = str(gpus)
    return {"requests": limits | asked, "limits": limits}


def resource_of(slots: Sequence[str]) -> str:
    """Return the resource name of a worker's slots. Raises ValueError for several kinds.

    >>> resource_of(("n0/0", "n0/1")), resource_of(("n0/mig-1g.10gb/2",))
    ('nvidia.com/gpu', 'nvidia.com/mig-1g.10gb')
    """
    kinds = {one.split("/")[1] if one.count("/") == 2 else "" for one in slots}
    if len(kinds) != 1:
        raise ValueError(f"a worker holds GPUs of one kind, not {sorted(kinds)}: {slots}")
    kind = kinds.pop()
    return f"{names.GPU_RESOURCE.partition('/')[0]}/{kind}" if kind else names.GPU_RESOURCE


def _volumes(launch: Launch, name: str, settings: ClusterSettings) -> list[Manifest]:
    volumes: list[Manifest] = [
        {"name": "scratch", "emptyDir": {"sizeLimit": settings.scratch}},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": settings.shm}},
        {"name": "order", "secret": {"secretName": name, "defaultMode": 0o440}},
    ]
    if launch.claim is not None:
        volumes.append({"name": "home", "persistentVolumeClaim": {"claimName": launch.claim}})
    return volumes


def owned_by(name: str, uid: str) -> list[Manifest]:
    """Return owner references to a Job; owned objects are deleted with it."""
    return [{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}]


def secret(
    launch: Launch, uid: str, config: bytes, tokens: Mapping[int, str], epoch: int
) -> Manifest:
    """Return the Secret of an attempt: its configuration, and a token for each worker by index."""
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    data = {paths.CONFIG_FILE: config, **token_files(tokens)}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "Opaque",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def token_files(tokens: Mapping[int, str]) -> dict[str, bytes]:
    """Return tokens by the names of the files in which workers find them."""
    return {paths.TOKEN.format(index=i): token.encode() for i, token in tokens.items()}


def service(launch: Launch, uid: str, epoch: int) -> Manifest:
    """Return the headless Service that names the workers of a gang.

    Names exist before a worker is ready, because the workers must connect to become ready.
    """
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {"batch.kubernetes.io/job-name": name},
        },
    }


def peers(launch: Launch, uid: str, epoch: int) -> Manifest:
    """Return the NetworkPolicy that lets only the workers of a gang reach each other.

    It also denies all other traffic to them, even on a site without policies of its own.
    """
    return _policy(launch, uid, epoch, {"from": [_pods_of(launch)]})


def entrance(launch: Launch, uid: str, settings: ClusterSettings, epoch: int) -> Manifest:
    """Return the NetworkPolicy that lets only the scheduler reach the port of a service.

    It also denies all other traffic to the pod, even on a site without policies of its own.
    """
    space = {"matchLabels": {"kubernetes.io/metadata.name": settings.scheduler_namespace}}
    scheduler = {
        "namespaceSelector": space,
        "podSelector": {"matchLabels": dict(settings.scheduler_labels)},
    }
    ports = [{"port": launch.serves, "protocol": "TCP"}]
    return _policy(launch, uid, epoch, {"from": [scheduler], "ports": ports})


def _policy(launch: Launch, uid: str, epoch: int, ingress: Manifest) -> Manifest:
    """Return a policy that allows one kind of ingress to the pods of an attempt, and no other."""
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": name,
            "labels": labels_of(launch),
            "annotations": {names.EPOCH: str(epoch)},
            "ownerReferences": owned_by(name, uid),
        },
        "spec": _pods_of(launch) | {"policyTypes": ["Ingress"], "ingress": [ingress]},
    }


def _pods_of(launch: Launch) -> Manifest:
    name = names.attempt_name(launch.worker.job, launch.worker.attempt)
    return {"podSelector": {"matchLabels": {"batch.kubernetes.io/job-name": name}}}


# --------------------------------------------------------------------------- places


def placement(node: str, slots: Sequence[str]) -> str:
    """Return the placement of a worker, as in the Job's annotation.

    >>> placement("n0", ("n0/0", "n0/1")), placement("n0", ())
    ('n0=n0/0,n0/1', 'n0=')
    """
    return f"{node}={','.join(slots)}"


def placements(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return node and slots of each worker from the Job's annotation.

    >>> placements("n0=n0/0,n0/1;n1=")
    [('n0', ('n0/0', 'n0/1')), ('n1', ())]
    """
    found = []
    for one in text.split(";") if text else ():
        node, _, slots = one.partition("=")
        found.append((node, tuple(word for word in slots.split(",") if word)))
    return found


def opening(pod: PodView, node: str, slots: Sequence[str], epoch: int) -> Manifest:
    """Return the strategic merge patch that pins a pod to a node and opens its gate.

    ``matchFields`` limits the kube-scheduler to that one node. The patch holds the pod's resource
    version, so a second patch conflicts and changes nothing. Raises ValueError if the gate is open
    already.
    """
    if names.ADMISSION_GATE not in pod.gates:
        raise ValueError(f"{names.ADMISSION_GATE} is not in {pod.gates}")
    given: dict[str, str | None] = {names.SLOTS: ",".join(slots), names.EPOCH: str(epoch)}
    # Managed fields are removed by one empty entry (KEP-555). Nothing applies these pods, and the
    # bookkeeping slows each later write of the kube-scheduler and the kubelet.
    more: Manifest = {"managedFields": [{}]}
    if pod.foreign:
        given |= {names.WORKER: str(pod.index), names.REASON: None}
        more = {"labels": {names.JOB: pod.job, names.ATTEMPT: str(pod.attempt)}}
    return {
        "metadata": {
            "uid": pod.uid,
            "resourceVersion": pod.version,
            "annotations": given,
            **more,
        },
        "spec": {
            "schedulingGates": [{"$patch": "delete", "name": names.ADMISSION_GATE}],
            "affinity": pinned(pod.affinity, node),
        },
    }


def pinned(affinity: Mapping[str, Any] | None, node: str) -> Manifest:
    """Return an affinity that allows one node only, within the nodes that it allowed before.

    Terms are alternatives, so each gets the node. Preferences are kept.

    >>> pinned(None, "n0")["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    [{'matchFields': [{'key': 'metadata.name', 'operator': 'In', 'values': ['n0']}]}]
    """
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    before = dict(affinity or {})
    of_nodes = dict(before.get("nodeAffinity") or {})
    required = dict(of_nodes.get(REQUIRED) or {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or ()), only]} for term in terms
    ]
    return before | {"nodeAffinity": of_nodes | {REQUIRED: required}}


def growing(launch: Launch, places_: Sequence[str], epoch: int) -> Manifest:
    """Return the merge patch that adds workers to a Job."""
    count = len(launch.nodes)
    return {
        "metadata": {"annotations": {PLACEMENT: ";".join(places_), names.EPOCH: str(epoch)}},
        "spec": {"completions": count, "parallelism": count},
    }
