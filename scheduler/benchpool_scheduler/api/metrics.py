"""Prometheus metrics, in a separate registry and with bounded labels.

Names follow Prometheus' conventions: base units, and ``_total`` for counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from benchpool_scheduler.service import MeasuredGpu, Metrics, Pool
from benchpool_scheduler.telemetry import GpuSample

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Traffic:
    """Metrics of HTTP requests, and the text of all metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "benchpool_http_requests",
            "Requests answered.",
            ["route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "benchpool_http_request_seconds",
            "Response time, without streams.",
            ["route"],
            registry=self.registry,
        )

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, str(status)).inc()
        if not route.endswith("_stream"):
            self._seconds.labels(route).observe(seconds)

    def text(self, pool: Pool) -> bytes:
        """Return all metrics in Prometheus' text format."""
        pool_registry = CollectorRegistry()
        pool_registry.register(PoolFigures(pool.figures.read()))
        return generate_latest(pool_registry) + generate_latest(self.registry)


class PoolFigures(Collector):
    """Collector of the pool's metrics at scrape time."""

    def __init__(self, figures: Metrics) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        """Yield one metric family per figure."""
        now = self._figures
        yield leading(True)
        yield _gauge("gpus", "GPUs by state.", ("state",), _single(now.gpus))
        yield _gauge("jobs", "Jobs that have not ended.", ("project", "state"), now.jobs.items())
        yield _gauge("queue_length", "Waiting jobs.", (), _one(now.queue_length))
        yield _counter("jobs_ended", "Jobs ended.", ("project", "state"), now.jobs_ended.items())
        yield _counter("submissions", "Accepted submissions.", (), _one(now.submissions))
        yield _counter("refusals", "Refused submissions.", ("code",), _single(now.refusals))
        yield _counter(
            "preemptions", "Jobs paused for other jobs.", ("project",), _single(now.preemptions)
        )
        yield _counter(
            "lost_gpu_seconds",
            "GPU seconds lost by preemptions.",
            ("project",),
            _single(now.lost_gpu_s),
        )
        yield _counter("passes", "Runs of the decision core.", (), _one(now.passes))
        yield _counter("pass_seconds", "Time in the decision core.", (), _one(now.pass_s))
        yield _gauge("last_pass_seconds", "Time of the last pass.", (), _one(now.last_pass_s))
        yield _gauge("store_bytes", "Size of the database.", (), _one(now.store_bytes))
        if now.disk is not None:
            free, size = now.disk.free, now.disk.size
            yield _gauge(
                "disk_free_bytes", "Free space on the state folder's disk.", (), _one(free)
            )
            yield _gauge("disk_size_bytes", "Size of the state folder's disk.", (), _one(size))
        stops = now.stops_waiting
        yield _gauge("stops_waiting", "Stop requests not yet stored.", (), _one(stops))
        yield _counter(
            "invariant_breaches",
            "Invariant violations found.",
            ("invariant",),
            _single(now.breaches),
        )
        yield _gauge(
            "past_use_gpu_seconds",
            "GPU seconds above quota, decayed with the policy's half-life.",
            ("project",),
            _single(now.past_use_gpu_s),
        )
        yield _gauge(
            "nodes_drained",
            "Nodes drained because of a fault.",
            (),
            _one(now.drained),
        )
        yield from _use(now.use)
        yield _gauge("problems", "Problems reported by health.", (), _one(len(now.problems)))


def leading(leads: bool) -> Metric:
    """Return the metric of leadership. The leader alone exports the pool's metrics."""
    return _gauge("leading", "Whether this replica leads.", (), _one(float(leads)))


def standing_by() -> bytes:
    """Return the metrics of a standby replica."""
    registry = CollectorRegistry()
    registry.register(_Single(leading(False)))
    return generate_latest(registry)


@dataclass(frozen=True, slots=True, eq=False)
class _Single(Collector):
    metric: Metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric


GPU = ("node", "gpu", "model", "simulated")
USE: Sequence[tuple[str, str, Callable[[GpuSample], float | None]]] = (
    ("gpu_activity_ratio", "Share of the last sample in which a kernel ran.",
     lambda it: it.activity),
    ("gpu_sm_activity_ratio", "Mean share of active multiprocessors in the last sample.",
     lambda it: it.sm_activity),
    ("gpu_memory_used_bytes", "Used memory of a GPU.",
     lambda it: it.memory_used_gib and it.memory_used_gib * 1024**3),
    ("gpu_power_watts", "Power draw of a GPU.", lambda it: it.power_w),
    ("gpu_temperature_celsius", "Temperature of a GPU.", lambda it: it.temperature_c),
)  # fmt: skip
"""Metrics per measured GPU. Labels name GPUs, never users or jobs."""


def _use(measured: Sequence[MeasuredGpu]) -> Iterator[Metric]:
    for name, text, read in USE:
        values = [
            ((it.node, str(it.index), it.model, str(it.sample.simulated).lower()), value)
            for it in measured
            if (value := read(it.sample)) is not None
        ]
        yield _gauge(name, text, GPU, values)


Labels = tuple[str, ...]
Values = Iterable[tuple[Sequence[str], float]]


def _single(values: Mapping[str, float]) -> Values:
    return [((label,), value) for label, value in values.items()]


def _one(value: float) -> Values:
    return [((), value)]


def _gauge(name: str, text: str, labels: Labels, values: Values) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"benchpool_{name}", text, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family


def _counter(name: str, text: str, labels: Labels, values: Values) -> CounterMetricFamily:
    family = CounterMetricFamily(f"benchpool_{name}", text, labels=labels)
    for label, value in values:
        family.add_metric(label, value)
    return family
