"""Report what this cluster lacks for benchpool, before the installation. Standard library only.

Every finding is one line: ok, note (works, but...), or stop (the install ends here).
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
OLDEST = (1, 30)
Read = Callable[[str], "Mapping[str, Any] | None"]


@dataclass(frozen=True)
class Finding:
    """Result of one check."""

    level: str
    text: str


@dataclass(frozen=True)
class Wanted:
    """Requirements of the release on the cluster."""

    workspace: str
    makes_workspace: bool
    release: str
    namespace: str
    storage_classes: tuple[str, ...]
    shared: tuple[tuple[str, str], ...]
    prefixes: tuple[str, ...]
    require_gpus: bool


def findings(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Yield the findings of all checks; ``read`` returns an object by its path, or None."""
    yield version(read)
    yield policies(read)
    yield gpus(read, wanted)
    yield from models(read, wanted)
    yield from storage(read, wanted)
    yield from shared(read, wanted)
    yield from namespace(read, wanted)
    yield from definitions(read, wanted)
    yield from runtimes(read)


def version(read: Read) -> Finding:
    """Check the version of Kubernetes."""
    found = read("/version") or {}
    text = str(found.get("gitVersion", "unknown"))
    numbers = (int(found["major"]), int(found["minor"].rstrip("+"))) if "minor" in found else (0, 0)
    if numbers < OLDEST:
        return Finding("stop", f"Kubernetes {text} is too old: 1.30 or newer is needed.")
    return Finding("ok", f"Kubernetes {text}.")


def policies(read: Read) -> Finding:
    """Check that admission policies in CEL are served."""
    group = read("/apis/admissionregistration.k8s.io/v1") or {}
    kinds = {one["name"] for one in group.get("resources", ())}
    if "validatingadmissionpolicies" not in kinds:
        return Finding(
            "stop",
            "ValidatingAdmissionPolicy is not served, so GPUs could be used beyond quotas. Enable "
            "it, or set policies.enabled to false and inform your users.",
        )
    return Finding("ok", "ValidatingAdmissionPolicy is served.")


def gpus(read: Read, wanted: Wanted) -> Finding:
    """Check that nodes report GPUs."""
    counts = {name: count for name, count, _ in gpu_nodes(read, wanted) if count}
    if counts:
        return Finding("ok", f"{sum(counts.values())} GPUs on {len(counts)} nodes.")
    return Finding(
        "stop" if wanted.require_gpus else "note",
        f"No node reports a resource that begins with {' or '.join(wanted.prefixes)}. Install the "
        "GPU vendor's device plugin on the nodes with GPUs.",
    )


def models(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Check that GPU nodes are labelled with their model."""
    silent = [
        name
        for name, count, labels in gpu_nodes(read, wanted)
        if count and "nvidia.com/gpu.product" not in labels
    ]
    if silent:
        yield Finding(
            "note",
            f"{len(silent)} GPU nodes have no label nvidia.com/gpu.product (first: {silent[0]}), "
            "so users cannot choose their GPUs by model. Install GPU feature discovery, or label "
            "them.",
        )


def gpu_nodes(read: Read, wanted: Wanted) -> Iterable[tuple[str, int, Mapping[str, str]]]:
    """Yield name, number of GPUs and labels of every node."""
    for node in (read("/api/v1/nodes") or {}).get("items", ()):
        room = node["status"].get("allocatable", {})
        count = sum(int(v) for k, v in room.items() if k.startswith(wanted.prefixes))
        yield node["metadata"]["name"], count, node["metadata"].get("labels", {})


def storage(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Check that volume claims for homes will be bound."""
    classes = (read("/apis/storage.k8s.io/v1/storageclasses") or {}).get("items", ())
    names = {one["metadata"]["name"] for one in classes}
    default = [one["metadata"]["name"] for one in classes if is_default(one)]
    for name in sorted(set(wanted.storage_classes)):
        if name and name not in names:
            yield Finding(
                "stop", f"There is no storage class {name}. Existing classes: {known(names)}."
            )
        elif not name and not default:
            yield Finding(
                "note",
                "There is no default storage class, so volumes for hub, scheduler and homes stay "
                f"pending. Name one in the values (existing: {known(names)}).",
            )
        else:
            yield Finding("ok", f"Storage class {name or default[0]}.")


DISKS = (
    "ebs.csi.aws.com",
    "pd.csi.storage.gke.io",
    "disk.csi.azure.com",
    "cinder.csi.openstack.org",
    "csi.vsphere.vmware.com",
    "rbd.csi.ceph.com",
    "rancher.io/local-path",
    "topolvm.io",
    "kubernetes.io/no-provisioner",
)
"""Provisioners of disks: a volume with a file system can be mounted by one node only."""


def shared(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Check that shared volumes use a storage class that supports several nodes."""
    classes = (read("/apis/storage.k8s.io/v1/storageclasses") or {}).get("items", ())
    for what, name in wanted.shared:
        for one in classes:
            chosen = one["metadata"]["name"] == name if name else is_default(one)
            if chosen and one.get("provisioner") in DISKS:
                yield Finding(
                    "note",
                    f"{what} must be ReadWriteMany, but storage class {one['metadata']['name']} "
                    f"({one['provisioner']}) usually creates disks for one node. If the claim "
                    "stays pending, name a class of a shared file system (NFS, CephFS, EFS, "
                    "Filestore).",
                )


def is_default(one: Mapping[str, Any]) -> bool:
    """Return whether this is the default storage class."""
    marks = one["metadata"].get("annotations", {})
    return bool(marks.get("storageclass.kubernetes.io/is-default-class") == "true")


def known(names: Iterable[str]) -> str:
    """Return the sorted names as text, or a text for none."""
    return ", ".join(sorted(names)) or "none"


def namespace(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Check that the work namespace can be created, or is labelled."""
    found = read(f"/api/v1/namespaces/{wanted.workspace}")
    if found is None:
        if not wanted.makes_workspace:
            yield Finding("stop", f"Namespace {wanted.workspace} does not exist. Create it first.")
        return
    about = found["metadata"]
    if about.get("labels", {}).get("benchpool.io/managed") != "true" and not wanted.makes_workspace:
        yield Finding(
            "note",
            f"Namespace {wanted.workspace} lacks the label benchpool.io/managed=true. Until it is "
            "set, GPUs can be used there beyond quotas.",
        )
    if wanted.makes_workspace:
        yield from owned("Namespace", about, wanted)


def definitions(read: Read, wanted: Wanted) -> Iterable[Finding]:
    """Check that no other release owns the custom resources."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trainingjobs.benchpool.io"
    found = read(path)
    if found is not None:
        yield from owned("CustomResourceDefinition", found["metadata"], wanted)


def owned(kind: str, about: Mapping[str, Any], wanted: Wanted) -> Iterable[Finding]:
    """Check that existing objects are annotated as objects of this release."""
    marks = about.get("annotations", {})
    owner = marks.get("meta.helm.sh/release-name"), marks.get("meta.helm.sh/release-namespace")
    if owner != (wanted.release, wanted.namespace):
        whose = f"release {owner[0]} in {owner[1]}" if owner[0] else "not Helm's"
        yield Finding(
            "note",
            f"{kind} {about['name']} already exists and is {whose}. `helm install` takes it over "
            "only with --take-ownership.",
        )


def runtimes(read: Read) -> Iterable[Finding]:
    """Report how GPUs are isolated, as far as the API server shows it."""
    classes = (read("/apis/node.k8s.io/v1/runtimeclasses") or {}).get("items", ())
    names = {one["metadata"]["name"] for one in classes if one["handler"].startswith("nvidia")}
    if names:
        yield Finding("ok", f"GPU runtimes are chosen by runtime class ({known(names)}).")
    else:
        yield Finding(
            "note",
            "There is no runtime class of NVIDIA. If the NVIDIA runtime is the nodes' default, an "
            "image with NVIDIA_VISIBLE_DEVICES=all sees every GPU of its node: set "
            "accept-nvidia-visible-devices-envvar-when-unprivileged = false on the nodes.",
        )


def connect() -> Read:
    """Return a reader that uses the service account of the pod."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    base = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return reader(base, (ACCOUNT / "token").read_text().strip(), ACCOUNT / "ca.crt")


def reader(base: str, token: str, authority: Path) -> Read:
    """Return a reader of an API server. Missing and forbidden objects are None."""
    trust = ssl.create_default_context(cafile=str(authority))

    def read(path: str) -> Mapping[str, Any] | None:
        asked = urllib.request.Request(  # noqa: S310 (the API server)
            base + path, headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with urllib.request.urlopen(asked, context=trust, timeout=30) as answer:  # noqa: S310
                found: Mapping[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as failed:
            if failed.code in (403, 404):
                return None
            raise

    return read


def report(found: Iterable[Finding]) -> int:
    """Print the findings and return the exit status."""
    status = 0
    for one in found:
        print(f"{one.level:5} {one.text}", flush=True)
        status = max(status, int(one.level == "stop"))
    return status


def wanted_of(given: Mapping[str, Any]) -> Wanted:
    """Return the requirements that the chart passes."""
    lists: dict[str, Any] = {key: tuple(given[key]) for key in ("storage_classes", "prefixes")}
    several = tuple((str(what), str(name)) for what, name in given["shared"])
    return Wanted(**{**given, **lists, "shared": several})


if __name__ == "__main__":
    sys.exit(report(findings(connect(), wanted_of(json.loads(os.environ["PREFLIGHT"])))))
