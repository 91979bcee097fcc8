"""GPUs of a cluster from the pages of dcgm-exporter, served by a real HTTP server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from benchpool_scheduler.telemetry.dcgm import DcgmSampler, ExportedGpu, read_page
from benchpool_scheduler.telemetry.placing import placed

SLOTS = ["n0/0", "n0/1", "n1/0"]
PODS = {("lab", "train-0"): ["n0/1"]}


def line(name: str, gpu: int, value: float, at: float | None = None, **labels: str) -> str:
    """Return a line as written by dcgm-exporter 4; with a time, as federated by Prometheus."""
    usual = {
        "gpu": str(gpu),
        "UUID": f"GPU-{labels.get('Hostname', 'n0')}-{gpu}",
        "pci_bus_id": f"00000000:0{gpu}:00.0",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA A100-SXM4-80GB",
        "Hostname": "n0",
        "DCGM_FI_DRIVER_VERSION": "570.86.15",
    }
    shown = ",".join(f'{key}="{label}"' for key, label in (usual | labels).items())
    time = "" if at is None else f" {round(at * 1000)}"
    return f"DCGM_FI_{name}{{{shown}}} {value}{time}"


def page(at: float | None, util: float, energy_mj: float, xid: float = 0, **more: float) -> str:
    held = {"container": "worker", "namespace": "lab", "pod": "train-0"}
    return "\n".join(
        [
            "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).",
            "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
            line("DEV_GPU_UTIL", 0, util, at, **held),
            line("DEV_GPU_UTIL", 1, 0, at),
            "# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).",
            "# TYPE DCGM_FI_DEV_FB_USED gauge",
            line("DEV_FB_USED", 0, 40960, at, **held),
            line("DEV_FB_FREE", 0, 40448, at, **held),
            line("DEV_FB_RESERVED", 0, 512, at, **held),
            "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter",
            line("DEV_TOTAL_ENERGY_CONSUMPTION", 0, energy_mj, at, **held),
            line("DEV_POWER_USAGE", 0, 301.5, at, **held),
            line("DEV_POWER_USAGE", 1, 60, at),
            line("DEV_GPU_TEMP", 0, 61, at, **held),
            line("DEV_XID_ERRORS", 0, xid, at, **held),
            *(line(name, 0, value, at, **held) for name, value in more.items()),
            "go_goroutines 12",
            "",
        ]
    )


@dataclass
class Exporter:
    """Server whose answer the test sets.

    Attributes:
        asked: Paths with their queries.
    """

    text: str = ""
    status: int = 200
    asked: list[str] = field(default_factory=list)
    address: str = ""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    served = Exporter()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.asked.append(self.path)
            self.send_response(served.status)
            self.end_headers()
            self.wfile.write(served.text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    served.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield served
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def sampler(exporter: Exporter) -> Iterator[DcgmSampler]:
    sampler = DcgmSampler(exporter.address, lambda: PODS)
    yield sampler
    sampler.close()


def test_federated_metrics_are_assigned_to_pod_slots(
    exporter: Exporter, sampler: DcgmSampler
) -> None:
    exporter.text = page(1000.0, 10, 5_000_000)
    assert sampler.sample(SLOTS, 1001.0, {}) == []
    exporter.text = page(1030.0, 75, 14_000_000, xid=79)
    held, free = sampler.sample(SLOTS, 1031.0, {})
    assert (held.gpu, held.at, held.span_s, held.activity) == ("n0/1", 1030.0, 30.0, 0.75)
    assert (held.memory_used_gib, held.memory_total_gib) == (40.0, 80.0)
    assert (held.energy_j, held.power_w, held.temperature_c) == (9000.0, 301.5, 61.0)
    assert (held.xid, held.sm_activity, held.simulated) == (79, None, False)
    assert (free.gpu, free.activity, free.energy_j) == ("n0/0", 0.0, 1800.0)
    assert free.memory_used_gib is None
    query = parse_qs(urlsplit(exporter.asked[0]).query)
    assert urlsplit(exporter.asked[0]).path == "/federate"
    assert query == {"match[]": ['{__name__=~"DCGM_FI_.*"}']}


def test_unchanged_value_is_no_sample(exporter: Exporter, sampler: DcgmSampler) -> None:
    for at in (1000.0, 1030.0, 1030.0):
        exporter.text = page(at, 10, 5_000_000, xid=31)
        found = sampler.sample(SLOTS, 1040.0, {})
    assert found == []


def test_xid_error_is_reported_once(exporter: Exporter, sampler: DcgmSampler) -> None:
    found = []
    for number, xid in enumerate((31, 31, 79, 79)):
        exporter.text = page(1000.0 + 30 * number, 10, 5_000_000, xid=xid)
        found += [it.xid for it in sampler.sample(SLOTS, 2000.0, {}) if it.gpu == "n0/1"]
    assert found == [None, 79, None]


def test_long_silence_is_gap(exporter: Exporter, sampler: DcgmSampler) -> None:
    for at in (1000.0, 5000.0):
        exporter.text = page(at, 100, 5_000_000)
        found = sampler.sample(SLOTS, at, {})
    assert {it.span_s for it in found} == {120.0}


def test_exporter_mean_precedes_last_value(exporter: Exporter, sampler: DcgmSampler) -> None:
    for at in (1000.0, 1030.0):
        exporter.text = page(at, 100, 0, PROF_GR_ENGINE_ACTIVE=0.25, PROF_SM_ACTIVE=0.125)
        found = sampler.sample(SLOTS, at, {})
    assert (found[0].activity, found[0].sm_activity) == (0.25, 0.125)


def test_page_of_single_exporter_is_read(exporter: Exporter) -> None:
    sampler = DcgmSampler(f"{exporter.address}/metrics", lambda: PODS)
    exporter.text = page(None, 50, 0)
    sampler.sample(SLOTS, 10.0, {})
    found = sampler.sample(SLOTS, 20.0, {})
    assert [(it.gpu, it.span_s) for it in found] == [("n0/1", 10.0), ("n0/0", 10.0)]
    assert exporter.asked == ["/metrics", "/metrics"]
    sampler.close()


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (503, "", "does not return metrics"),
        (200, "<html>", "does not return metrics"),
        (200, "up 1\n", "no metrics"),
    ],
)
def test_invalid_page_is_reported_until_valid(
    exporter: Exporter, sampler: DcgmSampler, status: int, text: str, message: str
) -> None:
    exporter.status, exporter.text = status, text
    assert not sampler.sample(SLOTS, 10.0, {})
    assert message in str(sampler.problem)
    exporter.status, exporter.text = 200, page(20.0, 50, 0)
    sampler.sample(SLOTS, 20.0, {})
    assert not sampler.problem


def test_unreachable_exporter_is_reported() -> None:
    sampler = DcgmSampler("http://127.0.0.1:9", dict)
    assert sampler.sample(SLOTS, 10.0, {}) == ()
    assert "does not return metrics" in str(sampler.problem)
    sampler.close()


def test_labels_renamed_by_prometheus_are_read() -> None:
    moved = {
        "pod": "exporter-x",
        "namespace": "gpu",
        "exported_pod": "a",
        "exported_namespace": "b",
    }
    (gpu,) = read_page(line("DEV_GPU_UTIL", 0, 1, 1.0, **moved) + "\n")
    assert gpu.pod == ("b", "a")


def test_slices_are_excluded() -> None:
    text = line("DEV_FB_USED", 0, 1, None, GPU_I_PROFILE="1g.10gb", GPU_I_ID="7") + "\n"
    assert read_page(text) == []


def test_foreign_pod_gpus_take_last_slots_of_node() -> None:
    gpus = [
        ExportedGpu("a", "n0", 0, ("other", "pod")),
        ExportedGpu("b", "n0", 1, None),
        ExportedGpu("c", "n9", 0, None),
    ]
    where = placed(gpus, {}, ["n0/0", "n0/1"])
    assert {slot: gpu.uuid for slot, gpu in where.items()} == {"n0/0": "b", "n0/1": "a"}
