"""A PostgreSQL server for a single test, on the loopback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from benchpool_support.loopback import free_port
from benchpool_support.waiting import until

SERVERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
INITDB = shutil.which("initdb", path=os.pathsep.join([os.environ["PATH"], *map(str, SERVERS)]))
MISSING = "no PostgreSQL server on this machine: install Debian's postgresql"
SERVER_ACCOUNT = "nobody" if os.geteuid() == 0 else None
"""Account of the server, because PostgreSQL does not run as root."""


@contextmanager
def process(argv: list[str], log: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process until the end of the block."""
    with log.open("ab") as output:
        started = subprocess.Popen(argv, stdout=output, stderr=output, **more)
    try:
        yield started
    finally:
        started.terminate()
        started.wait(30)


def serving(folder: Path, log: Path) -> Iterator[str]:
    """Run a server in a folder that its account can access, whichever account runs the tests."""
    assert INITDB is not None
    port = free_port()
    password = folder / "password"
    password.write_text("of-the-tests")
    if SERVER_ACCOUNT is not None:
        shutil.chown(folder, SERVER_ACCOUNT)
        shutil.chown(password, SERVER_ACCOUNT)
    data = str(folder / "data")
    access = ["--auth=scram-sha-256", "--username=hub", f"--pwfile={password}"]
    made = subprocess.run(
        [INITDB, "--no-sync", "-D", data, *access],
        user=SERVER_ACCOUNT,
        capture_output=True,
        cwd="/",
    )
    assert made.returncode == 0, made.stderr
    server = [str(Path(INITDB).with_name("postgres")), "-D", data, "-h", "127.0.0.1"]
    argv = [*server, "-p", str(port), "-k", "", "-F"]
    with process(argv, log, user=SERVER_ACCOUNT, cwd="/") as running:
        yield f"postgresql+psycopg2://hub:of-the-tests@127.0.0.1:{port}/postgres"
        running.send_signal(signal.SIGINT)  # "fast": it does not wait for connected clients


def answers(url: str) -> None:
    """Wait until the server accepts connections."""

    def taken() -> bool:
        engine = sa.create_engine(url)
        try:
            engine.connect().close()
        except OperationalError:
            return False
        finally:
            engine.dispose()
        return True

    until(taken, "the server takes connections")
