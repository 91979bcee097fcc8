"""Limits of a worker: memory, processes, foreign GPUs, rights and visible processes.

The tests use the kernel's own controllers, filters and namespaces. A limit that this machine does
not allow is skipped by name, as in ``benchpool doctor``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchpool_scheduler.runtime import EndedBy, Launch, SandboxLevel
from benchpool_scheduler.runtime.local import LocalRuntime, simulated
from benchpool_scheduler.runtime.local.gpus import SimulatedSource
from benchpool_scheduler.worker import process_limit
from benchpool_scheduler.worker.gpu_files import GpuFiles, MachineFiles, Part
from benchpool_scheduler.worker.supervisor import cgroups, device_filter, privacy, probe
from benchpool_support.workers import (
    Listener,
    end_all_workers,
    made_passable,
    python_launch,
    until_logged,
    whole_log,
)

HERE = probe.look()
ACCOUNT = "nobody"
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
"""System Python that other accounts can run; the tests' Python may lie in a closed folder."""

python_of_all = pytest.mark.skipif(PYTHON is None, reason="no Python in /usr/bin for all accounts")


def needs(what: str) -> pytest.MarkDecorator:
    there = what in HERE.bounds | HERE.private
    return pytest.mark.skipif(not there, reason=f"this machine does not let us set: {what}")


# --------------------------------------------------------------------------- resource limits


@needs("memory")
async def test_memory_overuse_ends_worker_with_reason(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(python_launch("data = b'x' * (512 << 20)"), memory_gib=0.125)
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (137, EndedBy.OUT_OF_MEMORY)
    assert ended.text is not None
    assert ended.text == "it ran out of memory: it needed more than the 0.125 GiB that it requested"


@needs("memory")
async def test_memory_overuse_of_child_is_reported(
    runtime: LocalRuntime, listener: Listener
) -> None:
    part = [sys.executable, "-S", "-c", "data = b'x' * (512 << 20)"]
    program = f"import subprocess, sys; sys.exit(3 if subprocess.run({part!r}).returncode else 0)"
    launch = replace(python_launch(program), memory_gib=0.125)
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).by is EndedBy.OUT_OF_MEMORY


@needs("memory")
async def test_memory_use_within_request_is_allowed(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(python_launch("data = b'x' * (64 << 20)"), memory_gib=0.25)
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)


@needs("pids")
async def test_process_limit_stops_forking_worker_with_reason(
    runtime: LocalRuntime, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_limit, "MOST_PROCESSES", 30)
    launch = python_launch(
        "import subprocess\nall = [subprocess.Popen(['sleep', '100']) for _ in range(60)]"
    )
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert ended.exit_code == 1
    assert ended.text is not None
    assert ended.text.startswith("it reached its limit of 30 processes and threads")


@needs("cpu")
async def test_cpu_request_limits_processor_time(runtime: LocalRuntime, listener: Listener) -> None:
    launch = replace(
        python_launch(
            "import time\nbegun, used = time.monotonic(), time.process_time()\n"
            "while time.monotonic() - begun < 1.5: pass\n"
            "print((time.process_time() - used) / (time.monotonic() - begun))"
        ),
        cpus=0.2,
    )
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert float(await whole_log(runtime, launch.worker)) < 0.4


async def test_disabled_sandbox_applies_no_limits(state: Path) -> None:
    launch = replace(
        python_launch("print(open('/proc/self/status').read()); x = b'x' * (256 << 20)"),
        memory_gib=0.125,
    )
    async with running(state, "off") as (runtime, listener):
        await runtime.start(launch)
        assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
        assert b"NoNewPrivs:\t0" in await whole_log(runtime, launch.worker)


# --------------------------------------------------------------------------- devices


@dataclass(frozen=True, slots=True)
class Numbered(SimulatedSource):
    """Simulated GPUs whose device files have the numbers of NVIDIA's driver, which is absent."""

    def device_files(self) -> GpuFiles:
        there = {device.index: (195, 200 + device.index) for device in self.devices()}
        parts = {device.uuid: Part(device.index) for device in self.devices()}
        return GpuFiles(MachineFiles(there), parts)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return the device files; without a driver an open fails with ENXIO, or EPERM if denied."""
    found = [tmp_path / f"nvidia{index}" for index in range(3)]
    for index, file in enumerate(found):
        try:
            os.mknod(file, 0o666 | 0o020000, os.makedev(195, 200 + index))
        except PermissionError:
            pytest.skip("only root may make device files")
    return found


OPEN = """
import errno, sys
for name in sys.argv[1:]:
    try: open(name)
    except OSError as error: print(errno.errorcode[error.errno])
"""


@needs("devices")
async def test_foreign_gpus_cannot_be_opened(state: Path, files: list[Path]) -> None:
    source = Numbered(3)
    for gpus, seen in (((1,), "EPERM ENXIO EPERM"), ((), "EPERM EPERM EPERM")):
        argv = (sys.executable, "-I", "-S", "-c", OPEN, *map(str, files))
        uuids = tuple(source.devices()[index].uuid for index in gpus)
        launch = python_launch("", argv=argv, gpus=uuids)
        async with running(state, "auto", source) as (runtime, listener):
            await runtime.devices()
            await runtime.start(launch)
            await listener.ended(launch.worker)
            assert (await whole_log(runtime, launch.worker)).decode().split() == seen.split()


async def test_worker_with_unknown_gpu_file_can_open_all_gpus(
    state: Path, files: list[Path]
) -> None:
    argv = (sys.executable, "-I", "-S", "-c", OPEN, *map(str, files))
    launch = python_launch("", argv=argv, gpus=("GPU-of-no-known-file",))
    async with running(state, "auto", Numbered(3)) as (runtime, listener):
        await runtime.devices()
        await runtime.start(launch)
        await listener.ended(launch.worker)
        assert (await whole_log(runtime, launch.worker)).decode().split() == ["ENXIO"] * 3


def test_cgroup_v2_filter_denies_only_listed_devices(files: list[Path]) -> None:
    group = cgroups.make(f"benchpool-filter-{os.getpid()}")
    if group is None or not os.path.exists(f"{group.folders[0]}/cgroup.kill"):
        pytest.skip("there is no cgroup v2 to write to")
    try:
        try:
            device_filter.attach(group.folders[0], [(195, 200), (195, 202)])
        except OSError as error:
            pytest.skip(f"the kernel takes no filter of devices ({error.strerror})")
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", OPEN, *map(str, files), "/dev/null"],
            preexec_fn=group.join,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.split() == ["EPERM", "ENXIO", "EPERM"]
    finally:
        group.remove()


# --------------------------------------------------------------------------- rights and privacy


async def test_worker_cannot_gain_privileges(runtime: LocalRuntime, listener: Listener) -> None:
    launch = python_launch("print(open('/proc/self/status').read())")
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert b"NoNewPrivs:\t1" in await whole_log(runtime, launch.worker)


@pytest.fixture
def place() -> Iterator[Path]:
    """Yield a folder below ``/tmp`` that other accounts can traverse."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def own_account(program: str, place: Path) -> Launch:
    """Return a launch as another account, in a folder of that account below ``/tmp``."""
    work = place / "work"
    work.mkdir()
    shutil.chown(work, ACCOUNT)
    argv = (str(PYTHON), "-I", "-S", "-c", program)
    return python_launch(program, argv=argv, working_dir=work, account=ACCOUNT)


@needs("processes")
@python_of_all
async def test_worker_with_own_account_has_private_tmp(place: Path) -> None:
    secret = place / "secret"
    secret.mkdir(mode=0o700)
    (secret / "key").write_text("open sesame")
    mine = f"benchpool-{os.getpid()}"
    program = (
        "import os, sys\n"
        f"open('/tmp/{mine}', 'w').write('x'); open('/var/tmp/{mine}', 'w').write('x')\n"
        "open('here', 'w').write('x')\n"
        "print(sorted(os.listdir('/tmp')), os.path.exists(sys.argv[1]))"
    )
    launch = own_account(program, place)
    launch = replace(launch, argv=(*launch.argv, str(secret / "key"), str(secret)))
    async with running(made_passable(place / "state")) as (runtime, listener):
        await runtime.start(launch)
        assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
        printed = (await whole_log(runtime, launch.worker)).decode().strip()
    # The working folder is visible in its place; folders closed to the account are not.
    assert printed == f"{sorted([mine, place.name])} False"
    assert not Path(f"/tmp/{mine}").exists()
    assert not Path(f"/var/tmp/{mine}").exists()
    assert (place / "work" / "here").read_text() == "x"
    assert list((place / "state").rglob("private")) == []


@needs("processes")
@python_of_all
async def test_worker_cannot_see_processes_of_foreign_accounts(place: Path) -> None:
    program = (
        "import os\nprint(sorted({os.stat(f'/proc/{pid}').st_uid for pid in os.listdir('/proc')"
        " if pid.isdigit()}), os.getuid())"
    )
    launch = own_account(program, place)
    async with running(made_passable(place / "state")) as (runtime, listener):
        await runtime.start(launch)
        await listener.ended(launch.worker)
        seen, own = (await whole_log(runtime, launch.worker)).decode().rsplit(" ", 1)
    assert seen == f"[{own.strip()}]"


@needs("tmp")
async def test_tmp_is_shared_under_one_account_unless_sandbox_full(
    state: Path, tmp_path: Path
) -> None:
    program = f"import os\nprint({os.path.basename(__file__)!r} in os.listdir('/tmp'))"
    shared = Path("/tmp") / os.path.basename(__file__)
    shared.touch()
    levels: tuple[tuple[SandboxLevel, bytes], ...] = (("auto", b"True"), ("full", b"False"))
    try:
        for level, seen in levels:
            launch = python_launch(program, working_dir=tmp_path)
            async with running(state, level) as (runtime, listener):
                await runtime.start(launch)
                assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
                assert (await whole_log(runtime, launch.worker)).strip() == seen
    finally:
        shared.unlink()


@needs("tmp")
async def test_environment_below_tmp_is_visible_with_its_sources(
    place: Path,
) -> None:
    environment, sources, others, work = (
        place / name for name in ("env", "sources", "others", "work")
    )
    packages = environment / "lib" / "python3.99" / "site-packages"
    for folder in (environment / "bin", packages, sources, others, work):
        folder.mkdir(parents=True)
    # The environment of the tests may itself lie below /tmp, and the worker does not name it.
    (environment / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (packages / "own.pth").write_text(f"import os\n{sources}\n")
    program = f"import os; print([os.path.exists(one) for one in {[str(sources), str(others)]}])"
    argv = (str(environment / "bin" / "python"), "-I", "-c", program)
    launch = python_launch(program, argv=argv, working_dir=work)
    async with running(made_passable(place / "state"), "full") as (runtime, listener):
        await runtime.start(launch)
        assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)
        assert (await whole_log(runtime, launch.worker)).strip() == b"[True, False]"


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another account")
@python_of_all
def test_unprivileged_worker_gets_private_tmp_if_kernel_permits(place: Path) -> None:
    folder = place / "private"
    folder.mkdir()
    shutil.chown(folder, ACCOUNT)
    program = (
        "import os, sys\nsys.path.insert(0, sys.argv[1])\n"
        "from benchpool_scheduler.worker.supervisor import privacy\n"
        "if 'tmp' not in privacy.holds(): sys.exit(77)\n"
        "privacy.enter(sys.argv[2], [], None)\n"
        "open('/tmp/x', 'w').write('x'); print(os.listdir('/tmp'), os.getuid())"
    )
    root = Path(privacy.__file__).parents[3]
    seen = place / "source"
    shutil.copytree(root / "benchpool_scheduler/worker", seen / "benchpool_scheduler/worker")
    (seen / "benchpool_scheduler/__init__.py").touch()
    for one in (seen, *seen.rglob("*")):
        one.chmod(0o755)
    done = subprocess.run(
        [str(PYTHON), "-I", "-S", "-c", program, str(seen), str(folder)],
        user=ACCOUNT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("other accounts than root may make no namespaces here")
    assert done.stderr == ""
    assert done.stdout.startswith("['x'] ")
    assert (folder / "tmp" / "x").exists()


# --------------------------------------------------------------------------- cleanup


async def test_cgroups_of_killed_supervisor_are_removed(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(
        python_launch("import os, time; print('pid', os.getppid()); time.sleep(100)"),
        memory_gib=1.0,
        cpus=1.0,
    )
    await runtime.start(launch)
    log = await until_logged(runtime, launch.worker, b"\n")
    supervisor = int(log.split()[1])
    os.kill(supervisor, signal.SIGKILL)
    assert await listener.exit_of(launch.worker) == (None, EndedBy.LOST)
    assert [p for p in _folders() if p.endswith(f"-{supervisor}")] == []


def _folders() -> list[str]:
    parents = {cgroups.own_folder(tree) for tree in cgroups.mounts()}
    return [name for parent in parents if parent is not None for name in os.listdir(parent)]


@asynccontextmanager
async def running(
    state: Path, level: SandboxLevel = "auto", source: SimulatedSource | None = None
) -> AsyncIterator[tuple[LocalRuntime, Listener]]:
    runtime = LocalRuntime(state, simulated(1) if source is None else source, sandbox=level)
    await runtime.open([])
    listener = Listener(runtime)
    try:
        yield runtime, listener
    finally:
        await listener.close()
        await runtime.close()
        await end_all_workers(state)
