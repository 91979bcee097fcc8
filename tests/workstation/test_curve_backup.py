"""`benchpool backup` includes the curves of jobs, and `restore` adds the missing curves."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_scheduler.curves.points import Reported
from benchpool_scheduler.curves.series import MetricReport
from benchpool_scheduler.store.curve_files import FOLDER, CurveFiles
from benchpool_scheduler.workstation import restoring
from benchpool_support.serving import served

FIRST, SECOND = "a" * 26, "b" * 26
MOST = 1_000


def files(state: Path) -> CurveFiles:
    return CurveFiles(state / "scheduler" / FOLDER)


def report(value: float) -> list[MetricReport]:
    return [MetricReport(1, (("loss", Reported(value, 1.0, 1)),))]


def test_curves_are_restored_without_replacing_existing(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    copy, packed = tmp_path / "copy", tmp_path / "copy.tar"
    before = files(tmp_path / "state")
    before.append(FIRST, report(0.5), MOST)
    before.append(SECOND, report(0.5), MOST)
    with served(tmp_path / "state") as service, service.client("root") as root:
        restoring.take(root.backup(), str(copy))
        restoring.take(root.backup(), "-")
    packed.write_bytes(capsysbinary.readouterr().out)
    for source in (copy, packed):
        state = tmp_path / f"from-{source.name}"
        files(state).append(SECOND, report(0.25), MOST)
        done = restoring.restore(state, str(source))
        assert any(line.startswith("Curves of 1 job restored to") for line in done)
        assert not any(line.startswith("Curves") for line in restoring.restore(state, str(source)))
        kept = {job: files(state).read(job)["loss"][0].value for job in (FIRST, SECOND)}
        assert kept == {FIRST: 0.5, SECOND: 0.25}
