"""Processor time, memory and disk traffic of process trees, from cgroups and ``/proc``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.telemetry.process_meter import Of, ProcessMeter
from benchpool_scheduler.telemetry.processes import ProcessRoot, of_benches
from benchpool_scheduler.worker import process_identity
from benchpool_scheduler.worker.worker_id import WorkerId

WORKER = WorkerId("j" * 26, 1, 0)
GIB = 1024**3


def cgroup(folder: Path, cpu_us: int, memory: int | None, read: int) -> ProcessRoot:
    folder.mkdir(exist_ok=True)
    (folder / "cpu.stat").write_text(f"usage_usec {cpu_us}\nuser_usec 1\n")
    if memory is not None:
        (folder / "memory.current").write_text(f"{memory}\n")
        (folder / "memory.peak").write_text(f"{2 * memory}\n")
        io = f"8:0 rbytes={read} wbytes=5 rios=1\n8:16 rbytes={read} wbytes=5\n"
        (folder / "io.stat").write_text(io)
    return ProcessRoot(os.getpid(), 0, (str(folder),))


def process(proc: Path, pid: int, parent: int, ticks: int, pages: int, read: int | None) -> None:
    (proc / str(pid)).mkdir(parents=True, exist_ok=True)
    before = ["S", str(parent), *["0"] * 9, str(ticks), "0", "0", "0", *["0"] * 6, str(pages)]
    (proc / str(pid) / "stat").write_text(f"{pid} (a ) name) {' '.join(before)} 0\n")
    if read is not None:
        (proc / str(pid) / "io").write_text(f"rchar: 9\nread_bytes: {read}\nwrite_bytes: 7\n")


def test_cgroup_counts_for_itself(tmp_path: Path) -> None:
    meter = ProcessMeter(tmp_path / "none")
    root = cgroup(tmp_path / "group", 1_000_000, GIB, 100)
    assert meter.sample({WORKER: (root, 4.0)}, 10.0) == []
    cgroup(tmp_path / "group", 6_000_000, GIB, 300)
    (found,) = meter.sample({WORKER: (root, 4.0)}, 20.0)
    assert (found.of, found.cpu_s, found.cpus, found.span_s) == (WORKER, 5.0, 4.0, 10.0)
    assert (found.memory_gib, found.memory_peak_gib) == (1.0, 2.0)
    assert (found.read_bytes, found.written_bytes) == (400, 0)


def test_process_tree_without_cgroup_is_summed(tmp_path: Path) -> None:
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    meter, root = ProcessMeter(tmp_path), ProcessRoot(100, 0)
    for pid, parent in ((100, 1), (101, 100), (102, 101), (200, 1)):
        process(tmp_path, pid, parent, 0, GIB // page, 10)
    meter.sample({"lease": (root, 0.0)}, 10.0)
    process(tmp_path, 102, 101, 3 * tick, GIB // page, 50)
    process(tmp_path, 200, 1, 100 * tick, 0, 10_000)
    (found,) = meter.sample({"lease": (root, 0.0)}, 20.0)
    assert (found.cpu_s, found.memory_gib, found.read_bytes) == (3.0, 3.0, 40)


def test_first_process_use_is_reported_separately(tmp_path: Path) -> None:
    tick, meter = os.sysconf("SC_CLK_TCK"), ProcessMeter(tmp_path / "proc")
    root = cgroup(tmp_path / "group", 0, GIB, 0)
    trees: Mapping[Of, tuple[ProcessRoot, float]] = {
        "lease": (ProcessRoot(100, 0), 0.0),
        WORKER: (replace(root, pid=200), 4.0),
    }
    for pid, parent in ((100, 1), (101, 100), (200, 1)):
        process(tmp_path / "proc", pid, parent, 0, 1, 10)
    meter.sample(trees, 10.0)
    process(tmp_path / "proc", 100, 1, 2 * tick, 1, 10)
    process(tmp_path / "proc", 101, 100, 3 * tick, 1, 10)
    process(tmp_path / "proc", 200, 1, 1 * tick, 1, 10)
    cgroup(tmp_path / "group", 4_000_000, GIB, 0)
    found = {it.of: (it.cpu_s, it.first_cpu_s) for it in meter.sample(trees, 20.0)}
    assert found == {"lease": (5.0, 2.0), WORKER: (4.0, 1.0)}


def test_values_missing_in_cgroup_come_from_processes(tmp_path: Path) -> None:
    proc, root = tmp_path / "proc", cgroup(tmp_path / "group", 0, None, 0)
    process(proc, os.getpid(), 1, 0, GIB // os.sysconf("SC_PAGE_SIZE"), None)
    meter = ProcessMeter(proc)
    meter.sample({WORKER: (root, 1.0)}, 10.0)
    (found,) = meter.sample({WORKER: (root, 1.0)}, 20.0)
    assert (found.memory_gib, found.read_bytes) == (1.0, None)


def test_peak_memory_is_kept_between_looks(tmp_path: Path) -> None:
    page, meter, root = os.sysconf("SC_PAGE_SIZE"), ProcessMeter(tmp_path), ProcessRoot(100, 0)
    for at, gib in ((0.0, 1), (10.0, 5), (20.0, 2)):
        process(tmp_path, 100, 1, 0, gib * GIB // page, None)
        found = meter.sample({"lease": (root, 0.0)}, at)
    assert (found[0].memory_gib, found[0].memory_peak_gib) == (2.0, 5.0)


def test_replaced_process_starts_new_measurement(tmp_path: Path) -> None:
    meter = ProcessMeter(tmp_path)
    process(tmp_path, 100, 1, 1000, 1, None)
    process(tmp_path, 300, 1, 5, 1, None)
    meter.sample({"lease": (ProcessRoot(100, 0), 0.0)}, 0.0)
    assert meter.sample({"lease": (ProcessRoot(300, 0), 0.0)}, 10.0) == []
    assert meter.sample({}, 20.0) == []


@pytest.mark.slow
def test_notebook_server_is_found_by_its_gpus() -> None:
    code = "import sys; print('here', flush=True); sys.stdin.read()"
    variables = {"BENCHPOOL_SERVER_START": "x", "CUDA_VISIBLE_DEVICES": "GPU-mine,GPU-two"}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        server.stdout.readline()
        found = of_benches({"lease-1": ("GPU-two", "GPU-mine"), "lease-2": ("GPU-mine",)})
        ticks = process_identity.start_ticks(server.pid)
        assert found == {"lease-1": ProcessRoot(server.pid, ticks or 0)}
        server.stdin.close()
