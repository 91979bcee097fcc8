"""Pod groups: how pods declare that they start together. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.kubernetes import GROUP_NAME, GROUP_SIZE

MOST_PODS = 4096
"""Most pods in a group."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A group of pods of one namespace; ``size`` is 0 if the pods do not declare it."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Keys under which a tool names the group of a pod; labels take precedence over annotations."""

    name: str
    size: str


KEYS = (
    GroupKeys(GROUP_NAME, GROUP_SIZE),
    GroupKeys("kueue.x-k8s.io/pod-group-name", "kueue.x-k8s.io/pod-group-total-count"),
    GroupKeys("scheduling.x-k8s.io/pod-group", GROUP_SIZE),
    GroupKeys("scheduling.k8s.io/group-name", GROUP_SIZE),
    GroupKeys("training.kubeflow.org/job-name", GROUP_SIZE),
    GroupKeys("ray.io/cluster", GROUP_SIZE),
    GroupKeys("batch.kubernetes.io/job-name", GROUP_SIZE),
)
"""Keys in order of precedence.

benchpool's come first; then the keys of Kueue, of the scheduler plugins (set by Kubeflow's
operators) and of Volcano. The last ones are set by Kubeflow, KubeRay and Jobs on all their pods.
"""


def group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> PodGroup | None:
    """Return the group of a pod; None for a pod that starts by itself.

    A group of other tools needs a size: without it, a complete group cannot be recognised.

    >>> group_of({"benchpool.io/group": "g"}, {"benchpool.io/group-size": "4"})
    PodGroup(name='g', size=4)
    >>> group_of({"ray.io/cluster": "r"}, {}) is None
    True
    >>> group_of({"benchpool.io/group": "g"}, {"benchpool.io/group-size": "many"})
    PodGroup(name='g', size=0)
    """
    for keys in KEYS:
        name = labels.get(keys.name) or annotations.get(keys.name)
        size = annotations.get(keys.size)
        if name and (size is not None or keys.name == GROUP_NAME):
            return PodGroup(name, _size(size or ""))
    return None


def _size(text: str) -> int:
    size = int(text) if text.isdecimal() and len(text) < 6 else 0
    return size if size <= MOST_PODS else 0
