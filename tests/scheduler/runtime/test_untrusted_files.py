"""Files of a worker are untrusted: links, pipes, invalid content and floods do no harm."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.runtime.local import LocalRuntime
from benchpool_scheduler.worker import log_reader, records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.progress import (
    METRICS_LIMIT,
    TEXT_LIMIT,
    ReportedProgress,
    read_progress,
)
from benchpool_support.workers import Listener, cancel, pause, python_launch, until_logged


def with_progress(folder: Path, text: str | bytes) -> Path:
    (folder / "progress.json").write_bytes(text.encode() if isinstance(text, str) else text)
    return folder


async def test_worker_progress_and_checkpoints_are_reported(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import json, os, time\n"
        "open(os.environ['BENCHPOOL_CHECKPOINT_DIR'] + '/state', 'w').write('1')\n"
        "new = os.environ['BENCHPOOL_PROGRESS_FILE'] + '.new'\n"
        "open(new, 'w').write(json.dumps({'fraction': 0.25, 'text': 'epoch 1',"
        " 'metrics': {'loss': 0.5}}))\n"
        "os.rename(new, os.environ['BENCHPOOL_PROGRESS_FILE'])\n"
        "time.sleep(60)"
    )
    await runtime.start(launch)
    progress = await listener.progress(launch.worker)
    assert (progress.fraction, progress.text, progress.metrics) == (0.25, "epoch 1", {"loss": 0.5})
    while progress.checkpoint_at is None:
        progress = await listener.next_progress(launch.worker, after=progress)
    assert abs(progress.checkpoint_at - progress.at) < 10


async def test_last_progress_is_reported_before_end(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os; open(os.environ['BENCHPOOL_PROGRESS_FILE'], 'w').write('{\"fraction\": 1}')"
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert [type(event).__name__ for event in listener.seen] == [
        "WorkerStarted",
        "WorkerProgress",
        "WorkerEnded",
    ]


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[1]", "null", "[" * 100_000, b"\xff\xfe", '{"fraction": ' + "9" * 70_000],
)
def test_invalid_progress_file_is_ignored(tmp_path: Path, text: str | bytes) -> None:
    assert read_progress(with_progress(tmp_path, text)) is None


def test_progress_values_are_bounded(tmp_path: Path) -> None:
    metrics = {f"m{n}": n for n in range(METRICS_LIMIT + 5)} | {"bad": "x", "flag": True}
    text = json.dumps({"fraction": 17, "text": "x" * 10_000, "metrics": metrics, "other": 1})
    found = read_progress(with_progress(tmp_path, text))
    assert found is not None
    assert found.fraction == 1.0
    assert found.text is not None
    assert len(found.text) == TEXT_LIMIT
    assert len(found.metrics) == METRICS_LIMIT


def test_non_finite_progress_values_are_dropped(tmp_path: Path) -> None:
    text = '{"fraction": NaN, "text": 5, "metrics": {"a": Infinity, "b": 1e999, "c": 2}}'
    assert read_progress(with_progress(tmp_path, text)) == ReportedProgress(None, None, {"c": 2.0})


@settings(deadline=None)  # it writes real files
@given(st.binary(max_size=300))
def test_arbitrary_bytes_do_not_break_progress_reader(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        read_progress(with_progress(Path(folder), data))


def test_link_as_record_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text('{"fraction": 0.5, "text": "secret"}')
    (tmp_path / "progress.json").symlink_to(secret)
    assert read_progress(tmp_path) is None


def test_pipe_as_record_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress.json")
    assert read_progress(tmp_path) is None


def test_link_as_log_is_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "log").symlink_to(secret)
    assert log_reader.read(tmp_path, 0, 100) == (0, b"")


def test_record_replaces_link_and_keeps_its_target(tmp_path: Path) -> None:
    goal = tmp_path / "goal"
    goal.write_text("mine")
    (tmp_path / "notice.json").symlink_to(goal)
    records.write(str(tmp_path), "notice.json", {"kind": "pause"}, durable=True)
    assert goal.read_text() == "mine"
    assert records.read(str(tmp_path), "notice.json") == {"kind": "pause"}


async def test_worker_replacing_files_by_links_can_be_stopped(
    runtime: LocalRuntime, listener: Listener, tmp_path: Path
) -> None:
    goal = tmp_path / "goal"
    goal.write_text("mine")
    launch = python_launch(
        "import os, time\n"
        "for name in ('BENCHPOOL_NOTICE_FILE', 'BENCHPOOL_PROGRESS_FILE'):\n"
        f"    os.symlink({str(goal)!r}, os.environ[name])\n"
        "folder = os.path.dirname(os.path.dirname(os.environ['BENCHPOOL_NOTICE_FILE']))\n"
        f"os.unlink(folder + '/log'); os.symlink({str(goal)!r}, folder + '/log')\n"
        "print('hidden', flush=True); open(folder + '/up', 'w').close(); time.sleep(60)"
    )
    await runtime.start(launch)
    folder = Folders(Path(runtime.state)).worker(launch.worker)
    await listener.started(launch.worker)
    while not (folder / "up").exists():
        await runtime.wait_log(launch.worker, 1 << 30, 0.05)
    assert (await runtime.read_log(launch.worker, 0, 100)).data == b""
    await runtime.stop(launch.worker, cancel(5))
    assert (await listener.ended(launch.worker)).by is EndedBy.NOTICE
    assert goal.read_text() == "mine"


async def test_worker_blocking_its_notice_gets_signal(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch(
        "import os, time\n"
        "os.makedirs(os.environ['BENCHPOOL_NOTICE_FILE'] + '/full')\n"
        "print('up'); time.sleep(60)"
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(1))
    assert await listener.exit_of(launch.worker) == (143, EndedBy.NOTICE)
    await until_logged(runtime, launch.worker, b"benchpool: the notice could not be written")


@pytest.mark.parametrize("job", ["", "..", "a/b", "A", "a\n", "a" * 65, "job-1"])
def test_job_id_with_path_characters_is_rejected(tmp_path: Path, job: str) -> None:
    with pytest.raises(ValueError, match="is not a job id"):
        Folders(tmp_path).job(job)
