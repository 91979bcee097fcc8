"""A job over quota is reclaimed, saves, shows why, and resumes by itself: with real processes."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.contract import GpuState, State
from benchpool_scheduler.worker import rendezvous
from benchpool_support.pools import (
    JEMMA,
    JOE,
    SUSAN,
    decided,
    make_pool,
    opened,
    python_job,
    reached,
    sleeper,
    until_job,
)

TRAINING = """
import json, os, pathlib, sys, time
checkpoint = pathlib.Path(os.environ["BENCHPOOL_CHECKPOINT_DIR"]) / "step"
notice = pathlib.Path(os.environ["BENCHPOOL_NOTICE_FILE"])
print("attempt", os.environ["BENCHPOOL_ATTEMPT"], "on", os.environ["CUDA_VISIBLE_DEVICES"])
if checkpoint.exists():
    print("resumed at step", checkpoint.read_text())
    sys.exit(0)
print("ready")
while not notice.exists():
    time.sleep(0.02)
told = json.loads(notice.read_text())
print(told["kind"], "for", told["for"])
checkpoint.write_text("41")
sys.exit(7)
"""


async def test_reclaimed_job_resumes_from_its_checkpoint(
    tmp_path: Path,
) -> None:
    async with opened(make_pool(tmp_path)) as pool:
        big = await pool.jobs.submit(SUSAN, python_job(TRAINING, gpus=4, name="big"))
        running = await reached(pool, big.id, State.RUNNING)
        assert (running.over_quota, running.attempt) == (True, 1)
        assert pool.views.status(SUSAN).text == (
            "9 GPUs: 4 train, 3 kept free for benches, 2 free; no job waits."
        )
        await pool.logs.wait(SUSAN, big.id, offset=0)

        of_joe = await pool.jobs.submit(JOE, sleeper(gpus=2, name="mine"))
        await reached(pool, of_joe.id, State.RUNNING)
        of_jemma = await pool.jobs.submit(JEMMA, sleeper(gpus=2, name="hers"))
        leaving = await reached(pool, big.id, State.PAUSING)
        assert leaving.reason is not None
        assert leaving.reason.code == "preempted"
        assert "project jemma reclaims 4 GPUs for a job of its own, which" in leaving.reason.text
        assert "resumes by itself" in leaving.reason.text

        await reached(pool, of_jemma.id, State.RUNNING)
        waiting = await decided(pool, big.id)
        assert waiting.state is State.QUEUED
        assert waiting.reason is not None
        # Users who may see the claimant get its name; other users get only its project.
        assert [(it.for_, it.rule) for it in waiting.preemptions] == [("jemma/hers", "R15")]
        (seen,) = pool.jobs.detail(SUSAN, big.id).job.preemptions
        assert seen.for_ == "jemma"
        assert waiting.preemptions[0].resumed_at is None
        assert pool.views.status(SUSAN).counts[GpuState.FREE] == 2

        await pool.jobs.act(JEMMA, of_jemma.id, "cancel")
        done = await reached(pool, big.id, State.SUCCEEDED)
        assert (done.attempt, done.exit_code, done.reason) == (2, 0, None)
        assert done.preemptions[0].resumed_at is not None
        first, second = pool.jobs.detail(SUSAN, big.id).attempts
        assert (first.ended_by, first.exit_code, second.ended_by) == ("preempt", 7, "itself")
        log = (await pool.logs.read(SUSAN, big.id, attempt=1)).data.decode()
        assert "pause for jemma\n" in log
        assert b"resumed at step 41" in (await pool.logs.read(SUSAN, big.id, attempt=2)).data


async def test_worker_environment_follows_allow_list(tmp_path: Path, monkeypatch: object) -> None:
    show = "import os, json; print(json.dumps(sorted(os.environ)))"
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(show, env={"LR": "0.1"}))
        await reached(pool, job.id, State.SUCCEEDED)
        import json

        names = set(json.loads((await pool.logs.read(SUSAN, job.id)).data))
    allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR", "LR"}
    own = {name for name in names if name.startswith(("BENCHPOOL_", "CUDA_"))}
    rest = names - allowed - own - rendezvous.NAMES
    rest -= {"PYTHONUNBUFFERED", "PYTHONPATH", "LC_CTYPE"}
    assert rest == {
        *("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_NAME", "WANDB_NOTES", "WANDB_DIR"),
        "TENSORBOARD_LOGGING_DIR",
    }
    assert {"BENCHPOOL_JOB_ID", "BENCHPOOL_PROJECT", "BENCHPOOL_ATTEMPT", "LR"} <= names


async def test_progress_file_is_read_and_kept(tmp_path: Path) -> None:
    script = (
        "import os, json, time\n"
        "with open(os.environ['BENCHPOOL_PROGRESS_FILE'], 'w') as f:\n"
        "    json.dump({'fraction': 0.25, 'text': 'epoch 1', 'metrics': {}}, f)\n"
        "time.sleep(1000)\n"
    )
    async with opened(make_pool(tmp_path)) as pool:
        job = await pool.jobs.submit(SUSAN, python_job(script))
        seen = await until_job(pool, job.id, lambda now: now.progress is not None)
        assert seen.progress is not None
        assert (seen.progress.fraction, seen.progress.text) == (0.25, "epoch 1")
        await pool.jobs.act(SUSAN, job.id, "cancel")
        ended = await reached(pool, job.id, State.CANCELLED)
        assert ended.progress == seen.progress
