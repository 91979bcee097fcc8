"""Pods created outside benchpool, as the API server sends them and as they are cached: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import Struct, field

from benchpool_scheduler.contract import kubernetes as names
from benchpool_scheduler.runtime.kubernetes.admitted.groups import PodGroup, group_of
from benchpool_scheduler.runtime.kubernetes.cluster_views import INDEX, PodView, keep_pod
from benchpool_scheduler.runtime.kubernetes.raw_objects import RawMeta, RawPod, RawPodSpec


class RawOwner(Struct, frozen=True):
    """An entry of ``ownerReferences``."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class RawOwnedMeta(RawMeta, frozen=True, rename="camel"):
    """``metadata`` with ``ownerReferences``."""

    owner_references: tuple[RawOwner, ...] = ()


class RawPlacedSpec(RawPodSpec, frozen=True, rename="camel"):
    """``spec`` with the node selector."""

    node_selector: dict[str, str] = field(default_factory=dict)


class RawAdmittedPod(RawPod, frozen=True):
    """A pod created outside benchpool, as the API server sends it."""

    metadata: RawOwnedMeta
    spec: RawPlacedSpec = RawPlacedSpec()


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """A pod created outside benchpool that carries benchpool's role label.

    Attributes:
        view: Cached like benchpool's pods. It has job, attempt and index once its gate is open.
        owner_kind, owner: The object that created it; the pod itself for a bare pod.
        project: Project named in its annotation, or empty.
        group: The group that it starts with; None if it starts by itself.
        order: Its index among the pods of its owner; -1 for none.
        node_selector: Labels that its node must have.
    """

    view: PodView
    owner_kind: str
    owner: str
    project: str
    preemptible: bool
    group: PodGroup | None
    order: int
    node_selector: Mapping[str, str]

    @property
    def gated(self) -> bool:
        """Whether its scheduling gate is closed."""
        return names.ADMISSION_GATE in self.view.gates


def keep_admitted(pod: RawAdmittedPod) -> AdmittedPod:
    """Return the fields that are needed of a pod created outside benchpool."""
    meta, labels, annotations = pod.metadata, pod.metadata.labels, pod.metadata.annotations
    owner = next((one for one in meta.owner_references if one.controller), None)
    worker = annotations.get(names.WORKER, "")
    view = replace(keep_pod(pod), owned=owner is not None)
    if labels.get(names.JOB) and worker.isdecimal():
        view = replace(view, job=labels[names.JOB], index=int(worker))
    else:
        view = replace(view, attempt=0, index=0)
    index = labels.get(INDEX) or annotations.get(INDEX) or ""
    return AdmittedPod(
        view=view,
        owner_kind=owner.kind if owner else "Pod",
        owner=owner.name if owner else meta.name,
        project=annotations.get(names.PROJECT, ""),
        preemptible=labels.get(names.PREEMPTIBLE) == "true",
        group=group_of(labels, annotations),
        order=int(index) if index.isdecimal() else -1,
        node_selector=dict(pod.spec.node_selector),
    )
