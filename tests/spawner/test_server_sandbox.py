"""Limits of a notebook server on one machine, and the cleanup after it.

The tests use real processes, cgroups, namespaces and accounts. A short program replaces JupyterLab.
Tests that this machine does not support are skipped with the reason that ``benchpool doctor`` would
report.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchpool_scheduler.contract import Lease
from benchpool_scheduler.worker import gpu_files, process_identity
from benchpool_scheduler.worker.supervisor import (
    cgroups,
    containment,
    private_folder,
    probe,
)
from benchpool_spawner import sandboxed
from benchpool_spawner.local import LocalGPUPAMSpawner, LocalGPUSpawner
from benchpool_spawner.sandbox import ServerSandbox
from benchpool_support.waiting import until_async

HERE = probe.look()
ACCOUNT = "nobody"
PYTHON = shutil.which("python3", path="/usr/bin:/bin") or ""
"""An interpreter that other accounts may run; they may be unable to reach the tests' own."""

as_root = pytest.mark.skipif(os.geteuid() != 0 or not PYTHON, reason="becomes another account")


def needs(what: str) -> pytest.MarkDecorator:
    there = what in HERE.bounds | HERE.private
    return pytest.mark.skipif(not there, reason=f"this machine does not let us set: {what}")


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder below ``/tmp`` that other accounts may pass through."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o711)
    (folder / "home").mkdir()
    if os.geteuid() == 0:
        shutil.chown(folder / "home", ACCOUNT)
    yield folder
    shutil.rmtree(folder)


Make = Callable[..., Any]


@pytest.fixture
async def make(place: Path) -> Any:
    """Yield a factory of spawners with short programs as servers.

    Their processes are ended afterwards.
    """
    made: list[Any] = []

    releasing: list[asyncio.Task[None]] = []

    def one(
        program: str,
        *,
        pam: bool = False,
        lease: Any = None,
        marked: bool = False,
        **settings: Any,
    ) -> Any:
        released: list[Any] = []

        async def grant(*_: object, **__: object) -> Any:
            return lease

        async def give_back(after: Any) -> None:
            if after is not None:
                await after
            released.append(found.lives_at_release())

        async def release(*_: object, after: Any = None, **__: object) -> None:
            releasing.append(asyncio.create_task(give_back(after)))
            await asyncio.wait(releasing[-1:], timeout=0.1 if sandboxed.END_S < 1 else None)

        class Plain(LocalGPUPAMSpawner if pam else LocalGPUSpawner):  # type: ignore[misc]
            lease_client = SimpleNamespace(wait_in_line=grant, release=release)

            def get_env(self) -> dict[str, str]:
                name, _, value = (self.start_tag or "").partition("=")
                mark = {name: value} if marked else {}
                return {"HOME": str(place / "home"), "PATH": "/usr/bin:/bin", **mark}

            def get_args(self) -> list[str]:
                return []

        name, db = ACCOUNT if pam else "joe", SimpleNamespace(commit=int)
        user = SimpleNamespace(name=name, db=db, groups=[])
        found: Any = Plain(port=1, **settings)
        found.user, found.orm_spawner = user, SimpleNamespace(state={}, server=None, name="")
        found.user_options = {"gpus": 1 if lease else 0}
        found.home_dir = str(place / "home")
        found.cmd = [PYTHON if pam else sys.executable, "-I", "-S", "-c", TELL + program]
        found.sandbox_folder = str(place / "server-tmp")
        found.released, found.lives_at_release = released, lambda: None
        made.append(found)
        return found

    yield one
    for spawner in made:
        if spawner.pid:
            await spawner.stop(now=True)
        await spawner.run_post_stop_hook()


TELL = """
import json, os, signal, subprocess, sys, time
def tell(**facts):
    path = os.environ["HOME"] + "/told"
    with open(path + ".new", "w") as file: json.dump(facts, file)
    os.rename(path + ".new", path)
"""


async def report_of(spawner: Any, place: Path) -> dict[str, Any]:
    """Start the server and return its report."""
    await spawner.start()

    async def look() -> bool:
        assert await spawner.poll() is None, "the server ended without a word"
        return (place / "home" / "told").exists()

    await until_async(look)
    found: dict[str, Any] = json.loads((place / "home" / "told").read_text())
    return found


STATUS = "status = open('/proc/self/status').read(); rights = 'NoNewPrivs:\\t0' in status\n"


# --------------------------------------------------------------------------- isolation


@as_root
@needs("processes")
async def test_server_under_own_account_is_isolated(make: Make, place: Path) -> None:
    of_others = tempfile.NamedTemporaryFile(dir="/tmp")  # noqa: SIM115
    mine = f"{place.name}-mine"
    server = make(
        STATUS + f"open('/tmp/{mine}', 'w').close()\n"
        "seen = {os.stat(f'/proc/{p}').st_uid for p in os.listdir('/proc') if p.isdigit()}\n"
        "tell(tmp=sorted(os.listdir('/tmp')), seen=list(seen), uid=os.getuid(), rights=rights)\n"
        "time.sleep(100)",
        pam=True,
    )
    report = await report_of(server, place)
    assert (report["seen"], report["rights"]) == ([report["uid"]], False)
    assert report["uid"] != os.getuid()
    # Of the machine's /tmp, only the path to its home is visible.
    assert {mine, place.name} <= set(report["tmp"])
    assert Path(of_others.name).name not in report["tmp"]
    assert not Path("/tmp", mine).exists()
    of_others.close()
    await server.stop(now=True)
    await server.run_post_stop_hook()
    assert list((place / "server-tmp").iterdir()) == []


@needs("tmp")
@pytest.mark.parametrize(("level", "apart"), [("auto", False), ("full", True), ("off", False)])
async def test_sandbox_level_isolates_servers_of_one_account(
    make: Make, place: Path, level: str, apart: bool
) -> None:
    shared = place / "shared"
    shared.touch()
    server = make(
        STATUS + f"tell(rights=rights, shared=os.path.exists({str(shared)!r}))\ntime.sleep(100)",
        sandbox=level,
    )
    assert await report_of(server, place) == {"rights": not apart, "shared": not apart}


# --------------------------------------------------------------------------- limits


@needs("memory")
async def test_memory_limit_kills_child_but_not_server(make: Make, place: Path) -> None:
    part = "part = subprocess.run([sys.executable, '-S', '-c', \"x = b'x' * (512 << 20)\"])\n"
    server = make(part + "tell(part=part.returncode)\ntime.sleep(100)", mem_limit=128 << 20)
    assert await report_of(server, place) == {"part": -signal.SIGKILL}
    assert await server.poll() is None


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return three device files of GPUs.

    No driver is behind them, so an allowed open fails with the kernel's own error.
    """
    folder = tmp_path / "dev"
    folder.mkdir(mode=0o755)
    for index in range(3):
        try:
            os.mknod(folder / f"nvidia{index}", 0o020666, os.makedev(195, 200 + index))
        except PermissionError:
            pytest.skip("only root may make device files")
    monkeypatch.setattr(gpu_files, "look", partial(gpu_files.look, dev=str(folder)))
    return sorted(str(path) for path in folder.iterdir())


OPEN = """
import errno
def tried(path):
    try: open(path)
    except OSError as error: return errno.errorcode[error.errno]
tell(opened=[tried(path) for path in %r])
time.sleep(100)
"""


@needs("devices")
async def test_server_without_gpu_cannot_open_gpus(
    make: Make, place: Path, cards: list[str]
) -> None:
    assert (await report_of(make(OPEN % cards), place))["opened"] == ["EPERM"] * 3


@needs("devices")
async def test_server_opens_only_leased_gpu(make: Make, place: Path, cards: list[str]) -> None:
    others = [(195, 200), (195, 202)]
    lease = Lease("l", "joe", "", "s", ["GPU-1"], datetime.now(UTC), denied_devices=others)
    server = make(OPEN % cards, lease=lease)
    await server.run_pre_spawn_hook()
    assert (await report_of(server, place))["opened"] == ["EPERM", "ENXIO", "EPERM"]


# --------------------------------------------------------------------------- leftovers


ESCAPE = """
escaped = subprocess.Popen(["env", "-i", "setsid", "sleep", "100"])
while open(f"/proc/{escaped.pid}/comm").read() != "sleep\\n": time.sleep(0.01)
tell(escaped=escaped.pid, ticks=open(f"/proc/{escaped.pid}/stat").read().split()[21])
time.sleep(100)
"""


def left(spawner: Any) -> ServerSandbox:
    return ServerSandbox.from_state(spawner.get_state()["sandbox"])


@pytest.mark.skipif(not HERE.group, reason="no cgroup can be made here")
@pytest.mark.parametrize("restarted", [False, True], ids=["the same Hub", "a restarted Hub"])
async def test_leftover_processes_end_with_server(make: Make, place: Path, restarted: bool) -> None:
    server = make(ESCAPE)
    report = await report_of(server, place)
    folders = left(server).groups
    assert all(os.path.exists(folder) for folder in folders)
    if restarted:
        state, server.proc, server.pid = server.get_state(), None, 0
        server = make(ESCAPE)
        server.load_state(json.loads(json.dumps(state)))
    await server.stop(now=True)
    assert process_identity.start_ticks(report["escaped"]) == int(report["ticks"])
    await server.run_post_stop_hook()
    assert process_identity.start_ticks(report["escaped"]) != int(report["ticks"])
    assert not any(os.path.exists(folder) for folder in folders)
    assert "sandbox" not in server.get_state()


DAEMON = """
asked = "{how} sleep 100 > /dev/null 2>&1 & echo $!"
escaped = int(subprocess.run(["sh", "-c", asked], stdout=subprocess.PIPE, text=True).stdout)
while open(f"/proc/{{escaped}}/comm").read() != "sleep\\n": time.sleep(0.01)
tell(escaped=escaped, ticks=open(f"/proc/{{escaped}}/stat").read().split()[21])
time.sleep(100)
"""
"""A process that has lost its parent."""


@pytest.fixture
def no_cgroup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "make", lambda *_: None)


@pytest.mark.parametrize("level", ["auto", "off"])
@pytest.mark.parametrize("restarted", [False, True], ids=["the same Hub", "a restarted Hub"])
async def test_marked_processes_end_before_release_without_cgroup(
    make: Make, place: Path, no_cgroup: None, level: str, restarted: bool
) -> None:
    lease = Lease("l", "joe", "", "s", ["GPU-1"], datetime.now(UTC))
    server = make(DAEMON.format(how="nohup"), lease=lease, marked=True, sandbox=level)
    await server.run_pre_spawn_hook()
    report = await report_of(server, place)
    if restarted:
        state, server.proc, server.pid = server.get_state(), None, 0
        server = make("", lease=lease, marked=True, sandbox=level)
        server.load_state(json.loads(json.dumps(state)))
    await server.stop(now=True)
    assert process_identity.start_ticks(report["escaped"]) == int(report["ticks"])
    server.lives_at_release = lambda: process_identity.start_ticks(report["escaped"])
    await server.run_post_stop_hook()
    assert server.released == [None]


@pytest.mark.parametrize("killed", [False, True], ids=["it is stopped", "it is killed"])
async def test_unmarked_processes_are_found_by_descent(
    make: Make, place: Path, no_cgroup: None, killed: bool
) -> None:
    escape = "env -i /bin/sh -c 'exec setsid sleep 100'"
    server = make(DAEMON.format(how=escape))
    report = await report_of(server, place)
    assert process_identity.stat_fields(report["escaped"])[1] == str(server.pid).encode()  # type: ignore[index]
    if killed:
        await server.poll()
        os.kill(server.pid, signal.SIGKILL)  # from now on it has no known ancestor
        server.proc.wait()
        assert await server.poll() is not None
    else:
        await server.stop(now=True)
    await server.run_post_stop_hook()
    assert process_identity.start_ticks(report["escaped"]) != int(report["ticks"])


async def test_leftover_processes_survive_without_sandbox_and_gpu(make: Make, place: Path) -> None:
    server = make(DAEMON.format(how="nohup"), marked=True, sandbox="off")
    report = await report_of(server, place)
    await server.stop(now=True)
    await server.run_post_stop_hook()
    assert process_identity.start_ticks(report["escaped"]) == int(report["ticks"])
    os.kill(report["escaped"], signal.SIGKILL)


async def test_unkillable_process_delays_gpu_release(
    make: Make, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate a process that waits in the kernel, for a disk or for a hanging GPU."""
    alive, sweep = [True], containment.sweep
    monkeypatch.setattr(containment, "sweep", lambda *given: sweep(*given) and not alive)
    monkeypatch.setattr(sandboxed, "END_S", 0.01)
    lease = Lease("l", "joe", "", "s", ["GPU-1"], datetime.now(UTC))
    server = make("tell()\ntime.sleep(100)", lease=lease)
    await server.run_pre_spawn_hook()
    await report_of(server, place)
    await server.stop(now=True)
    await server.run_post_stop_hook()
    assert server.released == []
    alive.clear()
    await until_async(lambda: server.released)


@needs("tmp")
async def test_unused_private_folders_are_swept(make: Make, place: Path) -> None:
    server = make("open('/tmp/mine', 'w').close()\ntell()\ntime.sleep(100)", sandbox="full")
    await report_of(server, place)
    used = Path(left(server).folder or "")
    (unused := used.with_name("benchpool-server-0123456789ab-1")).mkdir()
    (unused / "private").mkdir()
    (unused / "private" / "of-whom").symlink_to(place / "home")
    assert private_folder.sweep(str(used.parent)) == 1
    assert list(used.parent.iterdir()) == [used]
    assert (used / "private").is_dir()
    assert (place / "home" / "told").exists()
    os.kill(server.pid, signal.SIGKILL)
    server.proc.wait()
    assert private_folder.sweep(str(used.parent)) == 1
    assert private_folder.sweep(str(used.parent / "none")) == 0
