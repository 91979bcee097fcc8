"""Health reports a filling disk before it is full, tested on a real small disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_support.exhausted import SmallDisk, needs_root, small_disk
from benchpool_support.serving import Served, served

pytestmark = [pytest.mark.slow, needs_root]


async def looked(service: Served) -> str:
    """Return the problems about the disk after a check."""
    await service.pool.housekeeping.look()
    return " ".join(it for it in service.pool.observed.now.problems.values() if "disk of" in it)


def figure(service: Served, name: str) -> float:
    with service.client("root") as root:
        lines = root.metrics().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_health_reports_low_disk_space_until_freed(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", size="64m", inodes=4000) as disk:
        state = disk.folder / "state"
        with served(state) as service:
            assert service.do(looked(service)) == ""
            assert figure(service, "benchpool_disk_size_bytes") == 64 * 2**20
            ballast = disk.folder / "ballast"
            free = figure(service, "benchpool_disk_free_bytes")
            ballast.write_bytes(b"x" * int(free - 2 * 2**20))
            problem = service.do(looked(service))
            assert problem.startswith(f"The disk of {state} is nearly full: ")
            assert "MiB of 64.0 MiB are free (threshold: 3.2 MiB)." in problem
            assert f"`du -sh {state}/*`" in problem
            assert figure(service, "benchpool_disk_free_bytes") < 3.2 * 2**20
            with service.client("root") as root:
                health = root.status().health
            assert not health.ok
            assert problem in health.problems
            ballast.unlink()
            assert service.do(looked(service)) == ""


def test_health_reports_low_inodes(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", size="64m", inodes=1000) as disk,
        served(disk.folder / "state") as service,
    ):
        touch(disk, 970)
        assert "files (inodes) are free (threshold: 50)" in service.do(looked(service))


def touch(disk: SmallDisk, used: int) -> None:
    """Create files to use up most inodes."""
    for number in range(used):
        (disk.folder / f"file-{number}").touch()
