"""Workers under the account of their user, which requires root."""

from __future__ import annotations

import asyncio
import grp
import hashlib
import os
import pwd
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, SnapshotEntry
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.worker.supervisor import child
from benchpool_support.workers import (
    Listener,
    made_passable,
    pause,
    python_launch,
    until_logged,
    whole_log,
)

ACCOUNT = "nobody"
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another account")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that other accounts can traverse; the folders of pytest are closed to them."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def pair(open_folder: Path) -> AsyncIterator[tuple[LocalRuntime, Listener]]:
    runtime = LocalRuntime(made_passable(open_folder / "state"), simulated(1))
    await runtime.open([])
    listener = Listener(runtime)
    yield runtime, listener
    await listener.close()
    await runtime.close()


@as_root
async def test_worker_runs_as_its_user_and_cannot_touch_records(
    pair: tuple[LocalRuntime, Listener], open_folder: Path
) -> None:
    runtime, listener = pair
    content = b"input"
    sha256 = hashlib.sha256(content).hexdigest()
    stored = runtime.state / "objects" / sha256[:2] / sha256
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    stored.chmod(0o600)
    home = open_folder / "home"
    home.mkdir()
    shutil.chown(home, ACCOUNT)
    script = (
        "id -un; id -Gn; cat input; echo; echo more > made\n"
        "echo saved > $BENCHPOOL_CHECKPOINT_DIR/state && echo checkpoint ok\n"
        "echo out > $BENCHPOOL_OUTPUT_DIR/out && echo output ok\n"
        "echo '{}' > $BENCHPOOL_PROGRESS_FILE && echo progress ok\n"
        "for f in ../process.json ../log ../exit.json; do (cat $f || echo x > $f) 2>/dev/null"
        " && echo reached $f; done\n"
        "(echo x > ../new) 2>/dev/null && echo reached new\n"
        f"cat {stored} 2>/dev/null && echo reached objects\n"
        "exit 3\n"
    )
    launch = python_launch(
        "",
        argv=("sh", "-c", script),
        account=ACCOUNT,
        working_dir=None,
        files=(SnapshotEntry("input", sha256),),
        output_dir=home / "results",
    )
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (3, EndedBy.ITSELF)
    assert (await whole_log(runtime, launch.worker)).decode().splitlines() == [
        ACCOUNT,
        grp.getgrgid(pwd.getpwnam(ACCOUNT).pw_gid).gr_name,
        "input",
        "checkpoint ok",
        "output ok",
        "progress ok",
    ]
    owner = pwd.getpwnam(ACCOUNT).pw_uid
    results = sorted((home / "results").iterdir())
    assert [path.name for path in results] == ["made", "out"]
    assert {path.stat().st_uid for path in [home / "results", *results]} == {owner}


@as_root
async def test_user_can_read_notice_and_stop_reaches_worker(
    pair: tuple[LocalRuntime, Listener], open_folder: Path
) -> None:
    runtime, listener = pair
    launch = python_launch(
        "",
        argv=(
            "sh",
            "-c",
            "trap 'cat $BENCHPOOL_NOTICE_FILE; exit 5' TERM; echo up; sleep 60 & wait",
        ),
        account=ACCOUNT,
        working_dir=Path("/"),
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    await runtime.stop(launch.worker, pause(1))
    assert await listener.exit_of(launch.worker) == (5, EndedBy.NOTICE)
    assert b'"kind": "pause"' in await whole_log(runtime, launch.worker)


@as_root
async def test_results_for_unwritable_folder_are_not_written_by_root(
    pair: tuple[LocalRuntime, Listener], open_folder: Path
) -> None:
    runtime, listener = pair
    closed = open_folder / "closed"
    closed.mkdir(mode=0o700)
    launch = python_launch(
        "",
        argv=("sh", "-c", "echo out > $BENCHPOOL_OUTPUT_DIR/out"),
        account=ACCOUNT,
        working_dir=Path("/"),
        output_dir=closed / "results",
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert list(closed.iterdir()) == []
    assert b"could not be copied" in await whole_log(runtime, launch.worker)


@as_root
async def test_state_folder_closed_to_account_is_reported(
    pair: tuple[LocalRuntime, Listener],
) -> None:
    runtime, listener = pair
    runtime.state.chmod(0o700)
    launch = python_launch("", argv=("true",), account=ACCOUNT, working_dir=Path("/"))
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.by is EndedBy.COULD_NOT_START
    assert ended.text is not None
    assert "chmod o+x" in ended.text


async def test_missing_account_is_named(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("", account="no-such-user-here")
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.by, ended.text) == (
        EndedBy.COULD_NOT_START,
        "this machine has no account 'no-such-user-here'",
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may become any account")
async def test_unprivileged_service_rejects_jobs_of_foreign_account(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("", account="root")
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.by is EndedBy.COULD_NOT_START
    assert ended.text is not None
    assert "may not run jobs as 'root'" in ended.text


def test_only_root_switches_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(child.StartFailed, match="account number 12345 and may not run jobs as"):
        child.find_account(ACCOUNT)
    monkeypatch.setattr(os, "geteuid", lambda: pwd.getpwnam(ACCOUNT).pw_uid)
    assert child.find_account(ACCOUNT) is None
    assert child.find_account(None) is None


@as_root
async def test_shell_and_added_result_file_belong_to_user(
    pair: tuple[LocalRuntime, Listener],
) -> None:
    runtime, listener = pair
    launch = python_launch(
        "", argv=("/bin/sh", "-c", "echo up; exec sleep 1000"), working_dir=None, account=ACCOUNT
    )
    await runtime.start(launch)
    await until_logged(runtime, launch.worker, b"up")
    shell = await runtime.shell(launch.worker, 24, 80, "dumb")
    await shell.write(b"echo rea''dy; (cat ../process.json && echo rea''ched) 2>&1; id -un; exit\n")
    printed = b""
    async with asyncio.timeout(120):
        while piece := await shell.read():
            printed += piece
    await shell.close()
    assert f"\r\n{ACCOUNT}\r\n".encode() in printed
    assert b"reached" not in printed
    await runtime.leave(launch.worker.job, "hanging-1.txt", b"stacks")
    output = runtime.state / "jobs" / launch.worker.job / "output"
    assert (output / "hanging-1.txt").read_bytes() == b"stacks"
    assert (output / "hanging-1.txt").owner() == ACCOUNT
    await runtime.stop(launch.worker, pause(1.0))
    assert (await listener.exit_of(launch.worker))[1] is EndedBy.NOTICE
