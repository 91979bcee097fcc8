"""Pods of others as the API server sends them, and as they are kept: pure."""

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
    """``metadata`` with the owners."""

    owner_references: tuple[RawOwner, ...] = ()


class RawPlacedSpec(RawPodSpec, frozen=True, rename="camel"):
    """``spec`` with what says on which nodes the pod may be."""

    node_selector: dict[str, str] = field(default_factory=dict)


class RawAdmittedPod(RawPod, frozen=True):
    """A pod of others."""

    metadata: RawOwnedMeta
    spec: RawPlacedSpec = RawPlacedSpec()


@dataclass(frozen=True, slots=True)
class AdmittedPod:
    """A pod of others that came with our role.

    Attributes:
        view: As pods of ours are kept. It has job, attempt and index from when its gate opened.
        owner_kind, owner: What made it, itself for a bare pod.
        project: Of its annotation, empty for none.
        group: The pods that it starts with, None for itself alone.
        order: Its number among the pods of its owner, -1 for none.
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
        """Whether it stands behind our gate."""
        return names.ADMISSION_GATE in self.view.gates


def keep_admitted(pod: RawAdmittedPod) -> AdmittedPod:
    """Trim a pod of others."""
    meta, labels, said = pod.metadata, pod.metadata.labels, pod.metadata.annotations
    owner = next((one for one in meta.owner_references if one.controller), None)
    worker = said.get(names.WORKER, "")
    view = replace(keep_pod(pod), owned=owner is not None)
    if labels.get(names.JOB) and worker.isdecimal():
        view = replace(view, job=labels[names.JOB], index=int(worker))
    else:
        view = replace(view, attempt=0, index=0)
    index = labels.get(INDEX) or said.get(INDEX) or ""
    return AdmittedPod(
        view=view,
        owner_kind=owner.kind if owner else "Pod",
        owner=owner.name if owner else meta.name,
        project=said.get(names.PROJECT, ""),
        preemptible=labels.get(names.PREEMPTIBLE) == "true",
        group=group_of(labels, said),
        order=int(index) if index.isdecimal() else -1,
        node_selector=dict(pod.spec.node_selector),
    )
