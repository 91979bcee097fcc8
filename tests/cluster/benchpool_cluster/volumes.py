"""Dynamic local volumes: a claim gets a folder on the node of its first pod.

The provisioner runs beside the control plane and uses small pods to create and delete folders.
"""

from __future__ import annotations

import json

from benchpool_cluster import build
from benchpool_cluster.control_plane import ControlPlane, flags
from benchpool_cluster.images import BASE

NAMESPACE = "local-path-storage"
ACCOUNT = "provisioner"
CLASS = "local-path"
FOLDER = "/var/lib/volumes"
"""Folder of volumes in each node's own mount namespace, so a different folder on each."""


def start(plane: ControlPlane) -> None:
    """Start the provisioner, and make its storage class the default."""
    access = plane.access
    core = "/api/v1/namespaces"
    access.apply(f"{core}/{NAMESPACE}", _object("v1", "Namespace", NAMESPACE))
    accounts = f"{core}/{NAMESPACE}/serviceaccounts"
    access.apply(f"{accounts}/{ACCOUNT}", _object("v1", "ServiceAccount", ACCOUNT))
    scripts = {"setup": 'mkdir -m 0777 -p "$VOL_DIR"', "teardown": 'rm -rf "$VOL_DIR"'}
    config = _object("v1", "ConfigMap", "scripts") | {"data": scripts}
    access.apply(f"{core}/{NAMESPACE}/configmaps/scripts", config)
    access.apply(f"/apis/storage.k8s.io/v1/storageclasses/{CLASS}", _storage_class())
    paths = [{"node": "DEFAULT_PATH_FOR_NON_LISTED_NODES", "paths": [FOLDER]}]
    (plane.folder / "volumes.json").write_text(json.dumps({"nodePathMap": paths}))
    (plane.folder / "volume-pod.json").write_text(json.dumps(_helper()))
    options = {
        "config": plane.folder / "volumes.json",
        "kubeconfig": access.kubeconfig,
        "namespace": NAMESPACE,
        "service-account-name": ACCOUNT,
        "configmap-name": "scripts",
        "helper-image": BASE,
        "helper-pod-file": plane.folder / "volume-pod.json",
    }
    program = build.find("local-path-provisioner")
    plane.processes.start("local-path-provisioner", [program, "start", *flags(options)])


def _storage_class() -> dict[str, object]:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": CLASS, "annotations": default},
        "provisioner": "rancher.io/local-path",
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
    }


def _helper() -> dict[str, object]:
    container = {"name": "helper", "image": BASE, "imagePullPolicy": "IfNotPresent"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return _object("v1", "Pod", "helper") | {"spec": spec}


def _object(version: str, kind: str, name: str) -> dict[str, object]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
