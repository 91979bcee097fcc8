"""The Python that the notebook's kernel uses: is it there, and can it run a kernel?"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.worker import job_package

PROBE = (
    "import importlib.util as u, json, sys;"
    "print(json.dumps([sys.version_info[:2], *[u.find_spec(n) is not None"
    " for n in ('ipykernel', 'benchpool')]]))"
)
PROBE_S = 60.0


class CannotStart(Exception):
    """The notebook cannot be run at all; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python that has a kernel; ``knows_us`` when ``import benchpool`` works in it."""

    path: str
    version: tuple[int, int]
    knows_us: bool


def probe(path: str) -> Interpreter:
    """Ask an interpreter what it has.

    Raises:
        CannotStart: It is not there, does not answer, or has no ipykernel.
    """
    try:
        done = subprocess.run(
            [path, "-c", PROBE],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            check=True,
        )
        (major, minor), has_kernel, knows_us = json.loads(done.stdout)
    except FileNotFoundError as missing:
        raise CannotStart(
            f"the notebook's Python {path} is not on this machine: choose another kernel and send "
            "again."
        ) from missing
    except (OSError, subprocess.SubprocessError, ValueError) as bad:
        raise CannotStart(f"the notebook's Python {path} does not work: {bad}") from bad
    if not has_kernel:
        raise CannotStart(
            f"the notebook's Python {path} has no ipykernel: run `{path} -m pip install ipykernel` "
            "and send again."
        )
    return Interpreter(path, (major, minor), bool(knows_us))


@contextlib.contextmanager
def with_our_package(kernel: Interpreter) -> Iterator[None]:
    """Let ``from benchpool import checkpoint`` work in an interpreter that has no benchpool.

    In a job it is on the path already. Else the same file is added: nothing more of our
    environment may be imported there, since it may be for another Python.
    """
    if kernel.knows_us:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="benchpool-path-") as folder:
        file = Path(folder, job_package.NAME)
        job_package.write(file, job_package.content())
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = job_package.on_path(os.environ, str(file))
        try:
            yield
        finally:
            _put_back("PYTHONPATH", before)


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
