"""The state folder: all files of ``benchpool up``.

    benchpool.yaml  admin-token  metrics-token  up.json  up.lock
    hub/        jupyterhub.sqlite, cookie secret, proxy pid, ports, facts, keys of login links
    scheduler/  objects/  jobs/           of the scheduler
    homes/      logs/

All of it is private to its owner; the working directory is not used.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import files, hints

END_PATIENCE_S = 25.0
POLL_S = 0.1

FOLDERS = ("hub", "hub/login-keys", "scheduler", "objects", "jobs", "homes", "logs")


class RunningInstance(msgspec.Struct, frozen=True):
    """``up.json``: how to reach a running ``benchpool up``.

    ``process`` identifies it beyond its pid. ``token_file`` is relative to the state folder.
    """

    pid: int
    process: str
    url: str
    hub_api: str
    scheduler_api: str
    token_file: str
    auth: str


@dataclass(frozen=True, slots=True)
class StateFolder:
    """Paths of the files in the folder."""

    path: Path

    @property
    def config(self) -> Path:
        """Return the path of the pool's configuration."""
        return self.path / "benchpool.yaml"

    @property
    def admin_token(self) -> Path:
        """Return the path of a Hub API token with administrator rights."""
        return self.path / "admin-token"

    @property
    def shared_password(self) -> Path:
        """Return the path of the users' password under ``--auth shared-password``."""
        return self.path / "shared-password"

    @property
    def admin_password(self) -> Path:
        """Return the path of the administrators' password under ``--auth shared-password``."""
        return self.path / "admin-password"

    @property
    def metrics_token(self) -> Path:
        """Return the path of the token for Prometheus, which grants access to metrics only."""
        return self.path / "metrics-token"

    @property
    def running(self) -> Path:
        """Return the path of the addresses of a running ``benchpool up``."""
        return self.path / "up.json"

    @property
    def hub(self) -> Path:
        """Return the folder of the Hub."""
        return self.path / "hub"

    @property
    def facts(self) -> Path:
        """Return the path of the facts for ``hub_config/local.py``."""
        return self.hub / "facts.json"

    @property
    def login_keys(self) -> Path:
        """Return the folder of the hashes of login keys."""
        return self.hub / "login-keys"

    @property
    def server_tmp(self) -> Path:
        """Return the parent folder of notebook servers' temporary folders."""
        return self.hub / "server-tmp"

    @property
    def homes(self) -> Path:
        """Return the parent folder of home folders for users without a system account."""
        return self.path / "homes"

    @property
    def hub_log(self) -> Path:
        """Return the path of the log of Hub, proxy and scheduler."""
        return self.path / "logs" / "hub.log"


def at(path: Path) -> StateFolder:
    """Return the paths of a state folder, which need not exist.

    Errors: InvalidInput when its path cannot be written into files and messages.
    """
    folder = StateFolder(path.expanduser().absolute())
    files.check_spelling(folder.path, "The state folder", "state")
    return folder


def prepare(path: Path, *, passable: bool = False) -> StateFolder:
    """Create the folder and its parts.

    Args:
        passable: Whether jobs run as other accounts, which need access to their own folders.

    Raises:
        InvalidInput: It cannot be created or written, its path is not valid text, or other
            accounts that need access have none.
    """
    folder = at(path)
    try:
        folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.path.stat()
        if info.st_uid != os.geteuid():
            raise InvalidInput(
                f"The state folder {folder.path} belongs to another account: choose your own with "
                "--state.",
                field="state",
            )
        folder.path.chmod(0o711 if passable else 0o700)
        for name in FOLDERS:
            (folder.path / name).mkdir(mode=0o700, exist_ok=True)
        (folder.path / "jobs").chmod(0o711 if passable else 0o700)
    except OSError as failed:
        raise InvalidInput(
            f"The state folder {folder.path} cannot be used ({failed.strerror}): choose another "
            "with --state.",
            field="state",
        ) from failed
    closed = closed_to_others(folder.path / "jobs") if passable else None
    if closed is not None:
        raise InvalidInput(
            f"Jobs of other accounts have no access through {closed} to the state folder "
            f"{folder.path}: choose a folder such as /var/lib/benchpool with --state.",
            field="state",
        )
    return folder


def closed_to_others(place: Path) -> Path | None:
    """Return the first folder of a path that other accounts cannot pass through, or None."""
    above = {*place.absolute().parents, *place.resolve().parents}
    closed = [folder for folder in above if not folder.stat().st_mode & 0o001]
    return min(closed, key=lambda folder: len(folder.parts), default=None)


@contextmanager
def alone(folder: StateFolder) -> Iterator[int]:
    """Hold the folder's lock, so that only one workstation uses it; yield its descriptor.

    The Hub gets a copy of the lock. The function waits for a Hub that is ending, so that the next
    start finds its ports free.

    Raises:
        Unavailable: Another one runs; the message has its address.
    """
    # Private to its owner: any account that can open a file can lock it.
    descriptor = os.open(folder.path / "up.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor) as lock:
        deadline = time.monotonic() + END_PATIENCE_S
        while not _locked(lock.fileno()):
            other = files.read_json(folder.running, RunningInstance)
            alive = other is not None and identity(other.pid) == other.process
            if alive or time.monotonic() > deadline:
                where = f" at {other.url} (process {other.pid})" if other else ""
                how = hints.command("down", folder.path, os.environ)
                if other is None and (holder := _holder(lock.fileno())):
                    how = f"`kill {holder}`"  # the file for `down` is missing or damaged
                raise Unavailable(
                    f"benchpool is already running from {folder.path}{where}. Stop it with {how}, "
                    "or start a second one with another --state.",
                    code="already-running",
                )
            time.sleep(POLL_S)
        os.ftruncate(lock.fileno(), 0)
        os.pwrite(lock.fileno(), f"{os.getpid()}\n".encode(), 0)
        yield lock.fileno()


def _holder(descriptor: int) -> int | None:
    """Return the process ID in the lock file, or None when it has ended."""
    text = os.pread(descriptor, 20, 0).strip()
    return int(text) if text.isdigit() and identity(int(text)) else None


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def find_running(folder: StateFolder) -> RunningInstance:
    """Return the ``benchpool up`` that runs from a state folder.

    Raises:
        Unavailable: None runs.
    """
    running = files.read_json(folder.running, RunningInstance)
    if running is None or identity(running.pid) != running.process:
        raise Unavailable(
            f"No benchpool runs from {folder.path}. Start it with "
            f"{hints.command('up', folder.path, os.environ)}.",
            code="not-running",
        )
    return running
