"""The doctor rates each part of a machine and names remedies."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from benchpool_scheduler.worker.supervisor import cgroups, privacy, probe
from benchpool_scheduler.workstation import doctor, findings
from benchpool_scheduler.workstation.finding import Finding
from benchpool_scheduler.workstation.options import DoctorOptions
from benchpool_scheduler.workstation.state import StateFolder

Usage = namedtuple("Usage", "total used free")


def by_name(folder: Path, environ: dict[str, str]) -> dict[str, Finding]:
    return {one.name: one for one in findings.look(StateFolder(folder), environ)}


def test_report_covers_each_part_before_first_start(tmp_path: Path) -> None:
    found = by_name(tmp_path / "not" / "yet", {})
    parts = {"GPUs", "Node", "Proxy", "SQLite", "Processes", "Disk", "File system", "JupyterLab",
             "Running", "Limits", "Devices", "Separation"}  # fmt: skip
    assert parts <= set(found)
    assert not (tmp_path / "not").exists()


def test_findings_have_remedies(tmp_path: Path) -> None:
    for one in by_name(tmp_path, {"PATH": ""}).values():
        assert one.level == "ok" or one.remedy, one


def test_isolation_is_probed_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = probe.look()
    found = by_name(tmp_path, {})
    bound = {"memory", "cpu", "pids"} <= there.bounds
    assert found["Limits"].level == ("ok" if bound else "degraded")
    assert found["Devices"].level == ("ok" if "devices" in there.bounds else "degraded")
    hidden = {"tmp", "processes"} <= there.private
    assert found["Separation"].level == ("ok" if hidden else "degraded")
    monkeypatch.setattr(cgroups, "mounts", dict)
    monkeypatch.setattr(privacy, "holds", frozenset)
    found = by_name(tmp_path, {})
    assert found["Processes"].text.startswith("cgroups: none; benchpool cannot create a cgroup")
    assert "memory, processor, number of processes" in found["Limits"].text
    assert [found[name].level for name in ("Devices", "Separation")] == ["degraded"] * 2
    assert "they share /tmp" in found["Separation"].text


def test_low_disk_space_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1, 1, 2**20))
    assert by_name(tmp_path, {})["Disk"].level == "broken"


def test_network_file_system_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "file_system_of", lambda _: "nfs4")
    found = by_name(tmp_path, {})["File system"]
    assert (found.level, "nfs4" in found.text) == ("broken", True)


def test_json_report_has_findings_and_exit_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "file_system_of", lambda _: "nfs4")
    assert doctor.run(DoctorOptions(tmp_path, json=True)) == 1
    lines = json.loads(capsys.readouterr().out)
    assert {"name", "level", "text", "remedy"} == set(lines[0])
