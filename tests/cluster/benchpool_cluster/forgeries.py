"""Objects of a work-namespace user that imitate benchpool's objects or take from them."""

from __future__ import annotations

from typing import Any

from benchpool_cluster.doors import pod, second
from benchpool_cluster.requests import Request, a_pod, made, make
from benchpool_scheduler.contract import kubernetes as names

BATCH, APPS, NETWORK = "batch/v1", "apps/v1", "networking.k8s.io/v1"
POLICY, SLICES, SCALING = "policy/v1", "discovery.k8s.io/v1", "autoscaling/v2"
API = names.API_VERSION
TEMPLATE = {"metadata": {"labels": {"app": "mine"}}, "spec": pod()["spec"]}


def env(name: str, **value: Any) -> dict[str, Any]:
    return {"env": [{"name": name, **value}]}


def volume(**what: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **what}]}


def devices(key: str) -> Request:
    return a_pod("cdi", annotations={key: "all"})


KEY = {"key": "token-0"}
NEW_PODS = {
    "an attempt's Secret as files": a_pod("secret", volume(secret={"secretName": "{attempt}"})),
    "an attempt's Secret among other files": a_pod(
        "secret", volume(projected={"sources": [{"secret": {"name": "{attempt}"}}]})
    ),
    "a token of an attempt as a variable": a_pod(
        "secret", **env("T", valueFrom={"secretKeyRef": KEY | {"name": "{attempt}"}})
    ),
    "an attempt's Secret as variables": a_pod(
        "secret", envFrom=[{"secretRef": {"name": "{attempt}"}}]
    ),
    "an attempt's Secret in an init container": a_pod(
        "secret", {"initContainers": second(envFrom=[{"secretRef": {"name": "{attempt}"}}])}
    ),
    "an attempt's Secret for pulling": a_pod(
        "secret", {"imagePullSecrets": [{"name": "{attempt}"}]}
    ),
    "an attempt's Secret for a driver": a_pod(
        "secret",
        volume(csi={"driver": "example.org", "nodePublishSecretRef": {"name": "{attempt}"}}),
    ),
    "another's home": a_pod("home", volume(persistentVolumeClaim={"claimName": "{home}"})),
    "another's home to read": a_pod(
        "home", volume(persistentVolumeClaim={"claimName": "{home}", "readOnly": True})
    ),
    "the label of a gang": a_pod("gang", labels={"batch.kubernetes.io/job-name": "{attempt}"}),
    "the old label of a gang": a_pod("gang", labels={"job-name": "{attempt}"}),
    "the label of a gang's Job": a_pod(
        "gang", labels={"batch.kubernetes.io/controller-uid": "{uid}"}
    ),
    "the old label of a gang's Job": a_pod("gang", labels={"controller-uid": "{uid}"}),
    "a label of ours": a_pod("keys", labels={names.ROLE: names.ROLE_WORKER}),
    "what notebooks are let in by": a_pod("keys", labels={"component": "singleuser-server"}),
    "whose server it is": a_pod("keys", labels={"hub.jupyter.org/username": "susan"}),
    "the hostname of rank 0": a_pod("hostname", {"hostname": "{attempt}-0"}),
    "the subdomain of a gang": a_pod("hostname", {"hostname": "zero", "subdomain": "{attempt}"}),
    "the name of a worker": a_pod("name", name="{attempt}-9-abcde"),
    "the name of a notebook": a_pod("name", name="jupyter-joe"),
    "a priority that pushes workers out": a_pod("priority", {"priorityClassName": "high"}),
    "the priority of workers": a_pod("priority", {"priorityClassName": "benchpool"}),
    "the priority of the cluster's own": a_pod(
        "priority", {"priorityClassName": "system-cluster-critical"}
    ),
    "an extended resource of a DeviceClass": a_pod(
        "resource", resources={"limits": {"gpus.example.org/h100": "1"}}
    ),
    "a DeviceClass as a resource": a_pod(
        "gated", resources={"limits": {"deviceclass.resource.kubernetes.io/gpu": "1"}}
    ),
    "a device in an init container": a_pod(
        "resource",
        {"initContainers": second(resources={"limits": {"gpus.example.org/h100": "1"}})},
    ),
    "devices by NRI": devices("devices.nri.io/container.main"),
    "mounts by NRI": devices("mounts.nri.io/pod"),
    "resources by NRI": devices("memory-qos.nri.io"),
    "devices by CRI-O": devices("io.kubernetes.cri-o.Devices"),
    "devices by CRI-O for a container": devices("devices.crio.io/main"),
    "devices by Kata": devices("io.katacontainers.config.hypervisor.path"),
    "devices by CDI": devices("cdi.k8s.io/any"),
    "channels of IMEX": a_pod("visible-devices", **env("NVIDIA_IMEX_CHANNELS", value="0")),
    "the slices of a GPU": a_pod(
        "visible-devices", **env("NVIDIA_MIG_CONFIG_DEVICES", value="all")
    ),
    "all GPUs": a_pod("visible-devices", **env("NVIDIA_VISIBLE_DEVICES", value="all")),
    "a runtime class of another name": a_pod("runtime-class", {"runtimeClassName": "gpu"}),
}


def named(kind: str, spec: Any = None, group: str = "v1", **more: Any) -> dict[str, Any]:
    """Return an object with the name of a future attempt."""
    return made(kind, spec, group, name="bp-01hzxk8qj9v4e2c5t7m3n6p8ra-9") | more


MINE = {"matchLabels": {"app": "mine"}}
ALL: dict[str, Any] = {}
GANG = {"batch.kubernetes.io/job-name": "{attempt}"}
NOTEBOOKS = {"component": "singleuser-server"}
PORTS = [{"port": 8888}]
OPEN = {"policyTypes": ["Ingress"], "ingress": [{}]}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

NEW_OBJECTS = {
    "the Secret of a coming attempt": make(
        "secrets", named("Secret", data={"token-0": "eA=="}), "name"
    ),
    "the Job of a coming attempt": make(
        "jobs", named("Job", {"template": TEMPLATE}, BATCH), "name", BATCH
    ),
    "the Service of a coming attempt": make("services", named("Service", {"ports": PORTS}), "name"),
    "the NetworkPolicy of a coming attempt": make(
        "networkpolicies",
        named("NetworkPolicy", OPEN | {"podSelector": MINE}, NETWORK),
        "name",
        NETWORK,
    ),
    "the home of somebody who comes": make(
        "persistentvolumeclaims", made("PersistentVolumeClaim", CLAIM, name="home-joe"), "name"
    ),
    "a claim that says it is a home": make(
        "persistentvolumeclaims",
        made("PersistentVolumeClaim", CLAIM, annotations={"hub.jupyter.org/username": "joe"}),
        "keys",
    ),
    "a copy of another's home": make(
        "persistentvolumeclaims",
        made(
            "PersistentVolumeClaim",
            CLAIM | {"dataSource": {"kind": "PersistentVolumeClaim", "name": "{home}"}},
        ),
        "home",
    ),
    "a Service before another's workers": make(
        "services", made("Service", {"ports": PORTS, "selector": GANG}), "selects"
    ),
    "a Service before all notebooks": make(
        "services", made("Service", {"ports": PORTS, "selector": NOTEBOOKS}), "selects"
    ),
    "a way to all pods": make(
        "networkpolicies",
        made("NetworkPolicy", OPEN | {"podSelector": ALL}, NETWORK),
        "selects",
        NETWORK,
    ),
    "a way to all workers": make(
        "networkpolicies",
        made(
            "NetworkPolicy",
            OPEN | {"podSelector": {"matchLabels": {names.ROLE: names.ROLE_WORKER}}},
            NETWORK,
        ),
        "selects",
        NETWORK,
    ),
    "a budget that stops every drain": make(
        "poddisruptionbudgets",
        made("PodDisruptionBudget", {"maxUnavailable": 0, "selector": ALL}, POLICY),
        "selects",
        POLICY,
    ),
    "a ReplicaSet that adopts notebooks": make(
        "replicasets",
        made(
            "ReplicaSet",
            {
                "replicas": 0,
                "selector": {"matchLabels": NOTEBOOKS},
                "template": {
                    "metadata": {"labels": NOTEBOOKS},
                    "spec": pod({"restartPolicy": "Always"})["spec"],
                },
            },
            APPS,
        ),
        "selects",
        APPS,
    ),
    "a Job that takes others' pods": make(
        "jobs",
        made(
            "Job",
            {
                "manualSelector": True,
                "selector": {"matchLabels": NOTEBOOKS},
                "template": TEMPLATE | {"metadata": {"labels": NOTEBOOKS}},
            },
            BATCH,
        ),
        "selects|keys",
        BATCH,
    ),
    "another's job by the autoscaler": make(
        "horizontalpodautoscalers",
        made(
            "HorizontalPodAutoscaler",
            {
                "maxReplicas": 1,
                "scaleTargetRef": {"apiVersion": API, "kind": "TrainingJob", "name": "susans"},
            },
            SCALING,
        ),
        "scale",
        SCALING,
    ),
    "another address for rank 0": make(
        "endpointslices",
        made("EndpointSlice", None, SLICES, labels={"kubernetes.io/service-name": "{attempt}"})
        | {
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["192.0.2.1"], "hostname": "{attempt}-0"}],
        },
        "endpoints",
        SLICES,
    ),
    "news that a gang's pods were refused": make(
        "events",
        made("Event")
        | {
            "reason": "FailedCreate",
            "message": "mine",
            "involvedObject": {
                "kind": "Job",
                "name": "{attempt}",
                "uid": "{uid}",
                "namespace": "{space}",
            },
        },
        "event",
    ),
    "a TrainingJob in another's name": make(
        "trainingjobs",
        made("TrainingJob", {"user": "susan", "command": ["id"]}, API),
        "user",
        API,
    ),
    "a lease of GPUs": make(
        "buildleases",
        made(
            "BuildLease",
            {
                "user": "mallory",
                "server": "",
                "spawn": "1",
                "since": "2026-01-01T00:00:00Z",
                "gpus": ["gpu-1/0"],
            },
            API,
        ),
        "lease",
        API,
    ),
}
