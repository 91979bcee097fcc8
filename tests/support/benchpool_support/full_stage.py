"""A staged pool with every state of jobs and GPUs at once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from benchpool_scheduler.contract import (
    Attempt,
    EstimatedStart,
    GpuState,
    InLine,
    Lease,
    LinePlace,
    Preemption,
    Progress,
    ProjectQuota,
    State,
)
from benchpool_support.stage import StagedPool, gpu, job, reason

NOW = datetime.now(UTC)

MINE = job(
    "resnet",
    State.RUNNING,
    gpus=4,
    over_quota=True,
    attempt=2,
    progress=Progress(0.63, "epoch 19 of 30", NOW),
    preemptions=[Preemption(NOW, "joe: bert", "R15", 1460.0, NOW)],
)

WAITS = job(
    "ablation",
    gpus=2,
    reason=reason("Waits for 2 GPUs: 1 of 9 is free.", "It starts when job resnet ends."),
)

LATER = job("later", submitted=NOW)
THEIRS = job("bert", State.RUNNING, user="joe", project="joe")
PAUSED = job("nightly", State.PAUSED)
FAILED = job("typo", State.FAILED, ended=NOW, exit_code=1)


def fill(staged: StagedPool) -> None:
    """Add the jobs and GPUs to the stage."""
    staged.add(MINE, WAITS, LATER, THEIRS, PAUSED, FAILED)
    staged.text = "7 GPUs: 6 train; 2 jobs wait"
    staged.gpus = [gpu(index, state) for index, state in enumerate(GpuState)]
    staged.gpus[0] = gpu(0, GpuState.TRAIN_OVER_QUOTA, user="susan", job=MINE.id)
    staged.gpus[2] = gpu(2, GpuState.BUILD_HELD, user="joe", server="paper")
    staged.held_leases = [Lease("a" * 26, "joe", "paper", "s", [staged.gpus[2].uuid], NOW)]
    staged.build_quotas = {"joe": 2, "susan": 1}
    why = reason("2 GPUs are not free: 0 on one machine now, 2 GPUs held by 1 other server.")
    soon = EstimatedStart(NOW, NOW + timedelta(minutes=12), None)
    since = NOW - timedelta(minutes=4)
    staged.waiting = [
        InLine("susan", "", 1, [], LinePlace("b" * 26, 1, 2, since, why, soon)),
        InLine("joe", "large", 2, ["H100"], LinePlace("c" * 26, 2, 2, NOW, why, None)),
    ]
    staged.projects = [
        ProjectQuota("susan", 2, 3, 4, None, 2),
        ProjectQuota("joe", 2, 2, 1, 4, 0),
    ]
    staged.starts[MINE.id] = [
        Attempt(1, NOW - timedelta(hours=1), NOW, 143, "notice", [], ["lab1"]),
        Attempt(2, NOW, None, None, None, [staged.gpus[0].uuid], ["lab1"]),
    ]
    staged.starts[THEIRS.id] = [
        Attempt(1, NOW - timedelta(minutes=12), None, None, None, [], ["lab1"])
    ]
    staged.log_bytes[MINE.id] = b"".join(b"step %d\n" % number for number in range(200))
