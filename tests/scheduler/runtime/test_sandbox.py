"""What a worker cannot do: take more than it asked for, open others' GPUs, gain rights, look round.

The kernel's own controllers, filters and namespaces, whichever there are; what this machine does
not let us set is skipped by name, as ``benchpool doctor`` would say.
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
    log_says,
    made_passable,
    python_launch,
    whole_log,
)

HERE = probe.look()
ACCOUNT = "nobody"
PYTHON = shutil.which("python3", path="/usr/bin:/bin")
"""One that other accounts may run; ours may lie where they come to nothing."""

python_of_all = pytest.mark.skipif(PYTHON is None, reason="no Python in /usr/bin for all accounts")


def needs(what: str) -> pytest.MarkDecorator:
    there = what in HERE.bounds | HERE.private
    return pytest.mark.skipif(not there, reason=f"this machine does not let us set: {what}")


# --------------------------------------------------------------------------- what it may take


@needs("memory")
async def test_who_takes_more_memory_than_asked_for_is_ended_and_told_how_much_that_was(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(python_launch("data = b'x' * (512 << 20)"), memory_gib=0.125)
    await runtime.start(launch)
    ended = await listener.ended(launch.worker)
    assert (ended.exit_code, ended.by) == (137, EndedBy.OUT_OF_MEMORY)
    assert ended.text is not None
    assert ended.text == "it ran out of memory: it needed more than the 0.125 GiB that it asked for"


@needs("memory")
async def test_a_part_that_takes_too_much_is_why_the_whole_failed(
    runtime: LocalRuntime, listener: Listener
) -> None:
    part = [sys.executable, "-S", "-c", "data = b'x' * (512 << 20)"]
    program = f"import subprocess, sys; sys.exit(3 if subprocess.run({part!r}).returncode else 0)"
    launch = replace(python_launch(program), memory_gib=0.125)
    await runtime.start(launch)
    assert (await listener.ended(launch.worker)).by is EndedBy.OUT_OF_MEMORY


@needs("memory")
async def test_who_stays_within_what_was_asked_for_is_left_alone(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(python_launch("data = b'x' * (64 << 20)"), memory_gib=0.25)
    await runtime.start(launch)
    assert await listener.exit_of(launch.worker) == (0, EndedBy.ITSELF)


@needs("pids")
async def test_a_worker_that_only_makes_processes_is_stopped_at_a_number_and_told(
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
    assert ended.text.startswith("it had 30 processes and threads, and may not have more")


@needs("cpu")
async def test_a_worker_gets_the_processor_time_that_it_asked_for(
    runtime: LocalRuntime, listener: Listener
) -> None:
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


async def test_where_the_sandbox_is_off_nothing_of_it_is_there(state: Path) -> None:
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
    """GPUs whose device files have the numbers of NVIDIA's driver, which is not there."""

    def device_files(self) -> GpuFiles:
        there = {device.index: (195, 200 + device.index) for device in self.devices()}
        parts = {device.uuid: Part(device.index) for device in self.devices()}
        return GpuFiles(MachineFiles(there), parts)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """The device files; with no driver behind them the kernel says so, unless it says no first."""
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
async def test_the_gpus_of_others_cannot_be_opened(state: Path, files: list[Path]) -> None:
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


async def test_a_worker_whose_own_gpu_has_no_known_file_can_open_all(
    state: Path, files: list[Path]
) -> None:
    argv = (sys.executable, "-I", "-S", "-c", OPEN, *map(str, files))
    launch = python_launch("", argv=argv, gpus=("GPU-of-no-known-file",))
    async with running(state, "auto", Numbered(3)) as (runtime, listener):
        await runtime.devices()
        await runtime.start(launch)
        await listener.ended(launch.worker)
        assert (await whole_log(runtime, launch.worker)).decode().split() == ["ENXIO"] * 3


def test_the_filter_of_v2_denies_what_it_names_and_nothing_else(files: list[Path]) -> None:
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


async def test_no_program_gives_a_worker_more_rights_than_its_account_has(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = python_launch("print(open('/proc/self/status').read())")
    await runtime.start(launch)
    await listener.ended(launch.worker)
    assert b"NoNewPrivs:\t1" in await whole_log(runtime, launch.worker)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder below ``/tmp`` that other accounts may pass through."""
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
async def test_a_worker_with_an_account_of_its_own_has_a_tmp_of_its_own(place: Path) -> None:
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
        said = (await whole_log(runtime, launch.worker)).decode().strip()
    # The folder that it works in stays where it is; what its account does not reach stays away.
    assert said == f"{sorted([mine, place.name])} False"
    assert not Path(f"/tmp/{mine}").exists()
    assert not Path(f"/var/tmp/{mine}").exists()
    assert (place / "work" / "here").read_text() == "x"
    assert list((place / "state").rglob("private")) == []


@needs("processes")
@python_of_all
async def test_a_worker_does_not_see_the_processes_of_other_accounts(place: Path) -> None:
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
async def test_under_one_account_all_share_tmp_unless_that_is_asked_for(
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
async def test_an_environment_below_tmp_is_reached_with_the_sources_that_it_names(
    place: Path,
) -> None:
    environment, sources, others, work = (
        place / name for name in ("env", "sources", "others", "work")
    )
    packages = environment / "lib" / "python3.99" / "site-packages"
    for folder in (environment / "bin", packages, sources, others, work):
        folder.mkdir(parents=True)
    # this environment may lie below /tmp itself, where nobody names it
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
def test_who_is_no_root_has_a_tmp_of_its_own_where_the_kernel_lets_it(place: Path) -> None:
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


# --------------------------------------------------------------------------- what is left over


async def test_nothing_is_left_in_any_tree_of_a_worker_whose_supervisor_was_killed(
    runtime: LocalRuntime, listener: Listener
) -> None:
    launch = replace(
        python_launch("import os, time; print('pid', os.getppid()); time.sleep(100)"),
        memory_gib=1.0,
        cpus=1.0,
    )
    await runtime.start(launch)
    log = await log_says(runtime, launch.worker, b"\n")
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
