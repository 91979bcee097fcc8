"""GPUs, workers and benches of a cluster, as reported by the agents of its nodes.

An agent reports which pod has which device, from the kubelet, and the use of devices and pods. The
scheduler's own objects have the owner of a pod. A pod is matched by namespace, name and node. Where
the agent can read the cgroups of pods, the pod's uid must also be among them. A node without
reports is a gap in the samples.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE
from benchpool_scheduler.contract.node_report import NodeReport, ReportedGpu
from benchpool_scheduler.telemetry.live import LASTING_TICKS
from benchpool_scheduler.telemetry.placing import PodName, placed
from benchpool_scheduler.telemetry.process_meter import Of
from benchpool_scheduler.telemetry.sampler import HeldProcesses
from benchpool_scheduler.telemetry.samples import GpuSample, WorkerSample

KEPT_LOOKS = 8
"""Maximum number of pending reports of one node; the oldest is dropped first."""
PATIENCE_S = 60.0
"""Time after which an agent counts as silent, in seconds; a few ticks if those are longer."""
NAMED = 3
"""Maximum number of nodes that a sentence names."""


@dataclass(frozen=True, slots=True)
class NodePod:
    """Pod of ours on a node, with its slots and the worker or lease that it belongs to."""

    namespace: str
    name: str
    uid: str
    node: str
    slots: tuple[str, ...]
    of: Of


@dataclass(frozen=True, slots=True)
class _Device:
    """Reported GPU as a ``placing.NodeDevice``."""

    gpu: ReportedGpu
    node: str

    @property
    def uuid(self) -> str:
        return self.gpu.uuid

    @property
    def kind(self) -> str:
        return "" if self.gpu.resource == GPU_RESOURCE else self.gpu.resource.partition("/")[2]

    @property
    def index(self) -> int:
        return 0  # the kubelet has no order

    @property
    def pod(self) -> PodName | None:
        held = self.gpu.pods
        return (held[0].namespace, held[0].name) if held else None


@dataclass(frozen=True, slots=True)
class _Look:
    """Received report, with the pods of its node that existed then."""

    node: str
    at: float
    report: NodeReport
    pods: tuple[NodePod, ...]


class NodeReports:
    """Queue of agents' reports until they are sampled; see ``GpuSampler`` and ``WorkerSampler``.

    ``take`` must be called in the loop; the other methods may be called in any thread.

    Args:
        pods: Returns our pods.
        every_s: Seconds between two reports of one node.
    """

    def __init__(self, pods: Callable[[], Iterable[NodePod]], every_s: float) -> None:
        self._pods = pods
        self.every_s = every_s
        self._lock = threading.Lock()
        self._gpus: list[_Look] = []
        self._uses: list[_Look] = []
        self._received: dict[str, tuple[float, int, str]] = {}
        self._began: float | None = None
        self.problem: str | None = None

    def take(self, node: str, report: NodeReport, now: float) -> None:
        """Add a report of a node; a repeated report is ignored.

        Args:
            now: Time of the report, seconds since the epoch by the service's clock.
        """
        known = self._received.get(node)
        if known is not None and known[1] == report.look:
            return
        there = frozenset(report.pods)
        pods = [it for it in self._pods() if it.node == node and (not there or it.uid in there)]
        look = _Look(node, now, report, tuple(pods))
        with self._lock:
            self._received[node] = (now, report.look, report.problem)
            self._gpus = _bounded(self._gpus, look)
            self._uses = _bounded(self._uses, look)

    # ------------------------------------------------------------------ the ports

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return the samples reported since the last call."""
        with self._lock:
            looks, self._gpus = self._gpus, []
        self._began = now if self._began is None else self._began
        slots: dict[str, list[str]] = {}
        for slot in gpus:
            slots.setdefault(slot.partition("/")[0], []).append(slot)
        self.problem = self._problem(slots, now)
        return [it for look in looks for it in _gpu_samples(look, slots.get(look.node, []))]

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return the samples of the held workers and benches reported since the last call."""
        with self._lock:
            looks, self._uses = self._uses, []
        cpus = {it.of: it.cpus for it in held}
        return [
            replace(it, cpus=cpus[it.of])
            for look in looks
            for it in _worker_samples(look)
            if it.of in cpus
        ]

    def close(self) -> None:
        """Do nothing."""

    # ------------------------------------------------------------------ internals

    def _problem(self, nodes: Iterable[str], now: float) -> str | None:
        patience_s = max(PATIENCE_S, LASTING_TICKS * self.every_s)
        began = now if self._began is None else self._began
        with self._lock:
            received = dict(self._received)
        silent = [
            node
            for node in nodes
            if now - (received[node][0] if node in received else began) > patience_s
        ]
        if silent:
            return (
                f"GPU use is not measured on {_listed(silent)}: the agent there has sent no "
                f"report for more than {patience_s:.0f} s. Check that its pod runs: `kubectl get "
                "pods -A -l app.kubernetes.io/component=node-agent -o wide`."
            )
        problems = [
            (node, received[node][2]) for node in nodes if node in received and received[node][2]
        ]
        return (
            f"On {_listed([node for node, _ in problems])}: {problems[0][1]}" if problems else None
        )


def _bounded(looks: Sequence[_Look], new: _Look) -> list[_Look]:
    same = [it for it in looks if it.node == new.node]
    gone = same[0] if len(same) >= KEPT_LOOKS else None
    return [*(it for it in looks if it is not gone), new]


def _gpu_samples(look: _Look, slots: Sequence[str]) -> Iterable[GpuSample]:
    """Yield a sample for each slot with a known device; skip devices that several pods share."""
    pods: dict[PodName, NodePod] = {(it.namespace, it.name): it for it in look.pods if it.slots}
    devices = [
        _Device(gpu, look.node) for gpu in look.report.gpus if not gpu.shared and len(gpu.pods) <= 1
    ]
    where = placed(devices, {name: pod.slots for name, pod in pods.items()}, slots)
    for slot, device in where.items():
        pod, gpu = pods.get(device.pod or ("", "")), device.gpu
        if gpu.span_s is None or slot not in slots:
            continue
        yield GpuSample(
            at=look.at,
            span_s=gpu.span_s,
            gpu=slot,
            activity=gpu.activity,
            sm_activity=gpu.sm_activity,
            memory_used_gib=gpu.memory_used_gib,
            memory_total_gib=gpu.memory_total_gib,
            power_w=gpu.power_w,
            energy_j=gpu.energy_j,
            temperature_c=gpu.temperature_c,
            throttled=tuple(gpu.throttled),
            xid=gpu.xid,
            parent=gpu.parent or None,
            of=None if pod is None else pod.of,
        )


def _worker_samples(look: _Look) -> Iterable[WorkerSample]:
    of = {it.uid: it.of for it in look.pods}
    for use in look.report.uses:
        if use.pod in of:
            yield WorkerSample(
                of=of[use.pod],
                at=look.at,
                span_s=use.span_s,
                cpu_s=use.cpu_s,
                memory_gib=use.memory_gib,
                memory_peak_gib=use.memory_peak_gib,
                read_bytes=use.read_bytes,
                written_bytes=use.written_bytes,
            )


def _listed(nodes: Sequence[str]) -> str:
    """Return node names as text, a few of many.

    >>> _listed(["a", "b"]), _listed(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 more nodes')
    """
    more = len(nodes) - NAMED
    named = ", ".join(nodes[:NAMED])
    return f"{named} and {more} more node{'s' if more > 1 else ''}" if more > 0 else named
