"""Gangs over real nodes with common launchers and the documented examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, WorkerId
from benchpool_support.pods import launches, pause
from benchpool_support.real_pods import Bundle, RealStand

# The image installs about a hundred Debian packages, so the timeout allows for a slow network.
pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(1500)]

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = ROOT / "docs" / "examples"
PLACES = [("node-1", (0, 1)), ("node-2", (0, 1))]
STEPS = 800


async def test_mpirun_uses_all_workers_of_gang(real: RealStand, launchers_image: str) -> None:
    bundle = Bundle(over_mpi_py=(EXAMPLES / "over_mpi.py").read_text())
    real.bundle.add(bundle)
    script = "echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE on $(hostname)"
    gang = launches(
        PLACES,
        argv=("python3", "over_mpi.py", "sh", "-c", script),
        files=bundle.files,
        image=launchers_image,
    )
    workers = await real.run(gang)
    ended = await real.ended(*workers)
    log = await real.log(workers[0])
    assert [end.exit_code for end in ended] == [0, 0], log
    name = f"bp-{workers[0].job}-1"
    assert sorted(line for line in log.splitlines() if line.startswith("rank")) == [
        f"rank {rank} of 4 on {name}-{rank // 2}" for rank in range(4)
    ]


def torch_bundle() -> Bundle:
    """Return the example and the only package that it needs besides PyTorch."""
    checkpoint = ROOT / "extension" / "benchpool" / "checkpoint"
    texts = {
        f"benchpool/checkpoint/{path.name}": path.read_text() for path in checkpoint.glob("*.py")
    }
    texts["train_ddp.py"] = (EXAMPLES / "train_ddp.py").read_text()
    return Bundle(**texts)


async def train(
    real: RealStand, bundle: Bundle, image: str, attempt: int = 1, job: str | None = None
) -> list[WorkerId]:
    """Start an attempt of the example on four GPUs of two nodes."""
    gang = launches(
        PLACES,
        job=job,
        attempt=attempt,
        argv=("torchrun", "train_ddp.py", str(STEPS)),
        files=bundle.files,
        image=image,
    )
    return await real.run(gang)


async def test_paused_torchrun_job_resumes_from_exact_step(
    real: RealStand, launchers_image: str
) -> None:
    bundle = torch_bundle()
    real.bundle.add(bundle)
    whole = await train(real, bundle, launchers_image)
    await real.ended(*whole)
    expected = trained(await real.log(whole[0]))

    paused = await train(real, bundle, launchers_image)
    await real.until_logged(paused[0], "begins at 0")
    for worker in paused:
        await real.runtime.stop(worker, pause(60.0))
    assert {end.by for end in await real.ended(*paused)} == {EndedBy.NOTICE}

    again = await train(real, bundle, launchers_image, 2, paused[0].job)
    ended = await real.ended(*again)
    log = await real.log(again[0])
    assert [end.exit_code for end in ended] == [0, 0], log
    starts = re.findall(r"rank \d of 4 begins at (\d+)", log + await real.log(again[1]))
    assert len(starts) == 4
    assert len(set(starts)) == 1
    assert 0 < int(starts[0]) < STEPS
    assert trained(log) == expected


def trained(log: str) -> str:
    """Return the log line with the result of rank 0."""
    (line,) = (line for line in log.splitlines() if line.startswith("trained: "))
    return line
