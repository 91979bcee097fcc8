"""How pods say that they start together: pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.contract.kubernetes import GROUP_NAME, GROUP_SIZE

MOST_PODS = 4096
"""A group has at most so many pods."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A group of pods of one namespace; ``size`` is 0 where the pods do not say it."""

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class GroupKeys:
    """Under which keys some tool says the group of a pod: labels go before annotations."""

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
"""Ours first; then those of Kueue, of the scheduler plugins (which Kubeflow's operators set), of
Volcano, and what Kubeflow, KubeRay and Jobs write on the pods of one object anyway."""


def group_of(labels: Mapping[str, str], annotations: Mapping[str, str]) -> PodGroup | None:
    """Return the group of a pod; None for a pod that starts by itself.

    A group needs its size: without one, it is not known when all of it is there.

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
