"""Cgroups of workers: weights, removal of empty groups, and cgroup v1."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from benchpool_scheduler.worker.supervisor import cgroups, probe

WEIGHTS = ("cpu.shares", "cpu.weight")


@pytest.mark.skipif("cpu" not in probe.look().bounds, reason="processor time cannot be bound")
def test_cgroup_weight_follows_requested_cores() -> None:
    weights = []
    for cpus in (1.0, 4.0):
        group = cgroups.make(f"benchpool-weight-{os.getpid()}", cgroups.Bounds(cpus=cpus))
        assert group is not None
        files = [Path(folder) / name for folder in group.folders for name in WEIGHTS]
        weights += [int(file.read_text()) for file in files if file.exists()]
        group.remove()
    assert weights in ([1024, 4096], [100, 400])


def test_only_empty_cgroups_are_swept(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = cgroups.make(f"benchpool-left-1-0-{gone.pid}")
    used = cgroups.make(f"benchpool-used-1-0-{gone.pid}")
    own = cgroups.make(f"benchpool-own-1-0-{os.getpid()}")
    if left is None or used is None or own is None:
        pytest.skip("no cgroup can be made here")
    inside = subprocess.Popen(["sleep", "100"], preexec_fn=used.join)
    try:
        assert cgroups.sweep_empty(older_s=3600.0) == 0 or os.path.exists(left.folders[0])
        assert cgroups.sweep_empty(older_s=0.0) >= 1
        there = [os.path.exists(group.folders[0]) for group in (left, used, own)]
        assert there == [False, True, True]
    finally:
        used.kill()
        inside.wait()
        for group in (left, used, own):
            group.remove()


@pytest.mark.skipif("pids" not in cgroups.mounts(), reason="there is no v1 tree")
def test_cgroup_v1_kills_escaped_processes() -> None:
    folder = cgroups.own_folder("pids")
    assert folder is not None
    made = Path(folder) / f"benchpool-v1-1-0-{os.getpid()}"
    made.mkdir()
    group = cgroups.Group([str(made)])
    escaped = subprocess.Popen(["env", "-i", "setsid", "sleep", "100"], preexec_fn=group.join)
    group.kill()
    assert escaped.wait(120) == -signal.SIGKILL
    group.remove()
    assert not made.exists()
