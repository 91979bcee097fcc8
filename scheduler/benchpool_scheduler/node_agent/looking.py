"""One measurement of the node: the activity of its GPUs and pods since the previous one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchpool_scheduler.contract.node_report import (
    MOST_GPUS,
    MOST_PODS,
    NodeReport,
    ReportedGpu,
    ReportedPod,
    ReportedUse,
)
from benchpool_scheduler.node_agent import pod_cgroups
from benchpool_scheduler.node_agent.kubelet import Kubelet, KubeletDevice
from benchpool_scheduler.telemetry.process_meter import CounterSpans, Of, Reading, of_cgroup
from benchpool_scheduler.telemetry.sampler import GpuSampler
from benchpool_scheduler.telemetry.samples import GpuSample, WorkerSample

MOST_TEXT = 500
NO_CGROUPS = (
    "The use by workers and benches cannot be measured: no cgroups of pods (version 2) below {}."
)


class NodeLooks:
    """Repeated measurements of one node.

    Args:
        sampler: Measures GPUs by their UUIDs.
        cgroups: Folder with the cgroups of pods.
        clock: Monotonic seconds, so that changes of the machine's clock affect no interval.
    """

    def __init__(
        self,
        kubelet: Kubelet,
        sampler: GpuSampler,
        cgroups: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kubelet = kubelet
        self._sampler = sampler
        self._cgroups = cgroups
        self._clock = clock
        self._spans = CounterSpans()

    def look(self, number: int) -> NodeReport:
        """Return a report; never raises. The first one only starts the intervals.

        Args:
            number: Number of this measurement.
        """
        problems: list[str] = []
        try:
            devices = self._kubelet.devices()[:MOST_GPUS]
        except ConnectionError as failed:
            devices = []
            problems.append(f"GPU use is not measured: {failed}.")
        alone = [it.uuid for it in devices if not it.shared]
        # A node may have no driver, so it is called only for GPUs that the kubelet lists.
        samples = self._sampler.sample(alone, self._clock(), {}) if alone else ()
        if alone and self._sampler.problem:
            problems.append(self._sampler.problem)
        pods, uses = self._uses()
        if not pods:
            problems.append(NO_CGROUPS.format(self._cgroups))
        return NodeReport(
            look=number,
            gpus=list(_reported(devices, samples)),
            pods=pods,
            uses=uses,
            problem=" ".join(problems)[:MOST_TEXT],
        )

    def close(self) -> None:
        """Close driver and kubelet."""
        self._sampler.close()
        self._kubelet.close()

    def _uses(self) -> tuple[list[str], list[ReportedUse]]:
        groups = dict(sorted(pod_cgroups.find(self._cgroups).items())[:MOST_PODS])
        counted = {pod: of_cgroup((str(group),)) for pod, group in groups.items()}
        readings: dict[Of, Reading] = {
            pod: Reading(it) for pod, it in counted.items() if it is not None
        }
        samples = self._spans.samples(readings, self._clock())
        return [str(pod) for pod in readings], [_use(it) for it in samples]


def _reported(
    devices: Iterable[KubeletDevice], samples: Iterable[GpuSample]
) -> Iterable[ReportedGpu]:
    measured = {it.gpu: it for it in samples}
    for device in devices:
        pods = [ReportedPod(namespace, name) for namespace, name in device.pods]
        sample = measured.get(device.uuid)
        if sample is None or sample.span_s <= 0:
            yield ReportedGpu(device.uuid, device.resource, pods, shared=device.shared)
            continue
        yield ReportedGpu(
            device.uuid,
            device.resource,
            pods,
            span_s=min(sample.span_s, 3600.0),
            activity=sample.activity,
            sm_activity=sample.sm_activity,
            memory_used_gib=sample.memory_used_gib,
            memory_total_gib=sample.memory_total_gib,
            power_w=sample.power_w,
            energy_j=sample.energy_j,
            temperature_c=sample.temperature_c,
            throttled=list(sample.throttled),
            xid=sample.xid,
            parent=sample.parent or "",
        )


def _use(sample: WorkerSample) -> ReportedUse:
    return ReportedUse(
        pod=str(sample.of),
        span_s=min(sample.span_s, 3600.0),
        cpu_s=sample.cpu_s,
        memory_gib=sample.memory_gib,
        memory_peak_gib=sample.memory_peak_gib,
        read_bytes=sample.read_bytes,
        written_bytes=sample.written_bytes,
    )
