"""Mapping of a node's devices to its slots; pure functions.

The kubelet chooses devices when a pod starts, so to the scheduler a GPU is a slot of its node
(``node/0``; a slice of a GPU ``node/mig-1g.10gb/0``). The devices of a pod are mapped to the slots
of that pod. Devices that no pod of ours holds get the remaining slots.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

PodName: TypeAlias = tuple[str, str]
"""Namespace and name of a pod."""


class NodeDevice(Protocol):
    """GPU, or slice of a GPU, as known on its node.

    Attributes:
        kind: Part of the slot's name after the node: empty for whole GPUs.
        pod: The pod that holds it, or None.
    """

    @property
    def uuid(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def pod(self) -> PodName | None: ...


D = TypeVar("D", bound=NodeDevice)


def placed(
    found: Iterable[D], pods: Mapping[PodName, Sequence[str]], slots: Iterable[str]
) -> Mapping[str, D]:
    """Return the device of each slot.

    Args:
        pods: The slots of each pod of ours. ``slots``: all slots.

    >>> from benchpool_scheduler.telemetry.dcgm import ExportedGpu
    >>> gpus = [ExportedGpu(f"GPU-{i}", "n0", i, ("lab", "w0") if i == 2 else None)
    ...         for i in range(3)]
    >>> where = placed(gpus, {("lab", "w0"): ["n0/0"]}, ["n0/0", "n0/1", "n0/2"])
    >>> {slot: gpu.uuid for slot, gpu in where.items()}
    {'n0/0': 'GPU-2', 'n0/1': 'GPU-0', 'n0/2': 'GPU-1'}
    """
    of_pod: dict[PodName | None, list[D]] = defaultdict(list)
    for gpu in sorted(found, key=lambda it: (it.node, it.index, it.uuid)):
        of_pod[gpu.pod if gpu.pod in pods else None].append(gpu)
    where: dict[str, D] = {}
    for pod, held in pods.items():
        where |= dict(zip(held, of_pod.get(pod, ()), strict=False))
    ours = {slot for held in pods.values() for slot in held}
    left: dict[str, list[str]] = defaultdict(list)
    for slot in slots:
        if slot not in ours:
            left[slot.rpartition("/")[0]].append(slot)
    # GPUs of pods that are not ours take the last slots, as in the scheduler's ledger.
    for gpu in sorted(of_pod[None], key=lambda it: it.pod is not None):
        free = left[f"{gpu.node}/{gpu.kind}" if gpu.kind else gpu.node]
        if free:
            where[free.pop(0)] = gpu
    return where
