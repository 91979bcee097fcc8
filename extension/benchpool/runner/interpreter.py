"""Check of the Python for the notebook's kernel: it exists and can run a kernel."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
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
    """The notebook cannot run; the text gives the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Python with a kernel. ``knows_us``: ``import benchpool`` works in it."""

    path: str
    version: tuple[int, int]
    knows_us: bool


def probe(path: str) -> Interpreter:
    """Run an interpreter to find out which packages it has.

    Raises:
        CannotStart: It does not exist, does not answer, or has no ipykernel.
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
        raise CannotStart(
            f"the notebook's Python {path} does not work: {_cause(bad)}. Choose another kernel and "
            "send again."
        ) from bad
    if not has_kernel:
        install = shlex.join([path, "-m", "pip", "install", "ipykernel"])
        raise CannotStart(
            f"the notebook's Python {path} has no ipykernel: run `{install}` and send again."
        )
    return Interpreter(path, (major, minor), bool(knows_us))


def _cause(failed: Exception) -> str:
    """Return the last line that a failed interpreter printed, or the error.

    >>> _cause(subprocess.CalledProcessError(127, ["python"], stderr="sh: no python\\n"))
    'sh: no python'
    """
    printed = getattr(failed, "stderr", None) or ""
    return printed.strip().rpartition("\n")[2].strip() or str(failed)


@contextlib.contextmanager
def with_our_package(kernel: Interpreter) -> Iterator[None]:
    """Make ``from benchpool import checkpoint`` work in an interpreter without benchpool.

    In a job the file is on the path already. Otherwise it is added. No other package of this
    environment may be imported there, since they may be for another Python.
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
