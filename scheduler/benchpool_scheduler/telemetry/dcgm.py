"""GPUs of a cluster as reported by NVIDIA's dcgm-exporter, directly or through Prometheus.

``placing`` maps them to the slots of their nodes.

Source of names and units: dcgm-exporter's list of counters, ``default-counters.csv``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import httpx
from prometheus_client.parser import text_string_to_metric_families

from benchpool_scheduler.telemetry.placing import PodName, placed
from benchpool_scheduler.telemetry.samples import GpuSample

PREFIX = "DCGM_FI_"
FEDERATE = "/federate"
PAGE = "/metrics"
TIMEOUT_S = 5.0
MOST_BYTES = 16 * 1024**2
MOST_SPAN_S = 120.0
"""Maximum time that one value stands for, in seconds; time before it is a gap."""

MIB_IN_GIB, MILLI, PERCENT = 1024, 1000.0, 100.0


@dataclass(frozen=True, slots=True)
class ExportedGpu:
    """GPU as reported by the exporter.

    Attributes:
        pod: Namespace and name of the pod that holds it, or None.
        at: When Prometheus read it, seconds since the epoch; None on the exporter's own page.
        values: By the names of the exporter's counters, without ``DCGM_FI_``.
        kind: Empty: slices are not read.
    """

    uuid: str
    node: str
    index: int
    pod: PodName | None
    at: float | None = None
    values: Mapping[str, float] = field(default_factory=dict)
    kind: str = ""


def read_page(text: str) -> list[ExportedGpu]:
    """Return the GPUs of a page in Prometheus' text format; slices (MIG) are left out.

    Errors: ValueError for any other text.
    """
    found: dict[str, ExportedGpu] = {}
    values: dict[str, dict[str, float]] = defaultdict(dict)
    for family in text_string_to_metric_families(text):
        if not family.name.startswith(PREFIX):
            continue
        for sample in family.samples:
            labels = sample.labels
            uuid = labels.get("UUID", "")
            if not uuid or labels.get("GPU_I_ID"):
                continue
            name = sample.name.removeprefix(PREFIX).removesuffix("_total")
            values[uuid][name] = float(sample.value)
            at = None if sample.timestamp is None else float(sample.timestamp)
            known = found.get(uuid)
            if known is None or (at or 0.0) >= (known.at or 0.0):
                found[uuid] = ExportedGpu(uuid, _node(labels), _index(labels), _pod(labels), at)
    return [replace(gpu, values=values[uuid]) for uuid, gpu in found.items()]


def _node(labels: Mapping[str, str]) -> str:
    return labels.get("Hostname", "")


def _index(labels: Mapping[str, str]) -> int:
    text = labels.get("gpu", "")
    return int(text) if text.isdigit() else 0


def _pod(labels: Mapping[str, str]) -> PodName | None:
    """Return the pod; Prometheus renames the exporter's label if its own has the same name."""
    moved = "exported_" if "exported_pod" in labels else ""
    name = labels.get(f"{moved}pod", "")
    return (labels.get(f"{moved}namespace", ""), name) if name else None


class DcgmSampler:
    """Sampler of a cluster's GPUs from exported values; see the port ``GpuSampler``.

    Args:
        address: Address of Prometheus, or of an exporter's page (it ends with ``/metrics``).
        pods: Returns the slots of each of our pods that holds GPUs now.
    """

    def __init__(self, address: str, pods: Callable[[], Mapping[PodName, Sequence[str]]]) -> None:
        self._address = address.rstrip("/")
        self._pods = pods
        self._client = httpx.Client(timeout=TIMEOUT_S, trust_env=False)
        self._before: dict[str, tuple[float, ExportedGpu]] = {}
        self.problem: str | None = None

    def sample(
        self, gpus: Sequence[str], now: float, cpu_share: Mapping[str, float]
    ) -> Sequence[GpuSample]:
        """Return the values that are new since the last call."""
        try:
            found = read_page(self._read())
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            self.problem = (
                f"GPU use is not measured: {self._address} does not return metrics of "
                f"dcgm-exporter ({type(error).__name__}: {error})."
            )
            return ()
        self.problem = None if found or not gpus else (
            f"GPU use is not measured: {self._address} answers, but has no metrics of "
            "dcgm-exporter (DCGM_FI_...)."
        )  # fmt: skip
        where = placed(found, self._pods(), gpus)
        samples = [self._of(slot, gpu, now) for slot, gpu in where.items()]
        self._before = {uuid: it for uuid, it in self._before.items() if it[0] > now - 3600}
        return [it for it in samples if it is not None]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _read(self) -> str:
        if self._address.endswith(PAGE):
            asked = self._client.stream("GET", self._address)
        else:
            match = {"match[]": '{__name__=~"' + PREFIX + '.*"}'}
            asked = self._client.stream("GET", self._address + FEDERATE, params=match)
        body = bytearray()
        with asked as answer:
            answer.raise_for_status()
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise ValueError(f"its answer is longer than {MOST_BYTES} bytes")
        return body.decode()

    def _of(self, slot: str, gpu: ExportedGpu, now: float) -> GpuSample | None:
        read = now if gpu.at is None else gpu.at
        known = self._before.get(gpu.uuid)
        if known is not None and read <= known[0]:
            return None  # the same value again
        self._before[gpu.uuid] = (read, gpu)
        if known is None:
            return None
        span_s = min(read - known[0], MOST_SPAN_S)
        values, before = gpu.values, known[1].values
        used, rest = values.get("DEV_FB_USED"), values.get("DEV_FB_FREE")
        kept = values.get("DEV_FB_RESERVED", 0.0)
        total = None if used is None or rest is None else used + rest + kept
        return GpuSample(
            at=min(read, now),
            span_s=span_s,
            gpu=slot,
            activity=_share(values.get("PROF_GR_ENGINE_ACTIVE"), values.get("DEV_GPU_UTIL")),
            sm_activity=_share(values.get("PROF_SM_ACTIVE"), None),
            memory_used_gib=None if used is None else used / MIB_IN_GIB,
            memory_total_gib=None if total is None else total / MIB_IN_GIB,
            power_w=values.get("DEV_POWER_USAGE"),
            energy_j=_energy(before, values, span_s),
            temperature_c=values.get("DEV_GPU_TEMP"),
            xid=_new_xid(before.get("DEV_XID_ERRORS"), values.get("DEV_XID_ERRORS")),
        )


def _share(ratio: float | None, percent: float | None) -> float | None:
    """Return a share: the mean over the exporter's interval, else its last percentage."""
    found = percent / PERCENT if ratio is None and percent is not None else ratio
    return None if found is None or found != found else min(max(found, 0.0), 1.0)


def _energy(before: Mapping[str, float], now: Mapping[str, float], span_s: float) -> float | None:
    name = "DEV_TOTAL_ENERGY_CONSUMPTION"
    if name in before and now.get(name, -1.0) >= before[name]:
        return (now[name] - before[name]) / MILLI
    power = now.get("DEV_POWER_USAGE")
    return None if power is None else power * span_s


def _new_xid(before: float | None, now: float | None) -> int | None:
    """Return a new error only: the counter keeps the last one forever."""
    return int(now) if now and now == now and now != before else None
