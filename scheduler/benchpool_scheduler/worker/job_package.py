"""The part of ``benchpool`` that every job and every kernel can import, as one file on its path.

It is built from the sources of the installed package, so that no code is duplicated. Standard
library only; the same sources always give the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

PARTS = (
    "checkpoint/*.py",
    "failures.py",
    "functions/__init__.py",
    "functions/grid.py",
    "functions/remote_function.py",
    "metrics/*.py",
    "values/*.py",
)
"""Modules of the package that are included; they import the standard library only."""

KERNEL_PARTS = (
    *PARTS,
    "failed_inputs.py",
    "foreign/__init__.py",
    "foreign/functions.py",
    "foreign/jobs.py",
    "foreign/link.py",
    "foreign/magics.py",
    "functions/call_text.py",
    "functions/rejected.py",
    "functions/session.py",
    "functions/session_calls.py",
    "kernel/__init__.py",
    "kernel/probe.py",
)
"""Modules that kernels of a notebook server have."""

INIT = {"in_jobs.py": "benchpool/__init__.py"}
STARTUP = {"job_startup.py": "sitecustomize.py", "job_stacks.py": "benchpool_stacks.py"}
"""Modules included under another name: the package's ``__init__``, and start-up code of jobs."""

NAME = "benchpool.zip"
EPOCH = (1980, 1, 1, 0, 0, 0)


@cache
def content() -> bytes:
    """Return the file for jobs. Raises OSError if the package's sources are missing."""
    return _packed({**INIT, **STARTUP}, PARTS)


@cache
def kernel_content() -> bytes:
    """Return the file for kernels. Raises OSError if the package's sources are missing."""
    return _packed(INIT, KERNEL_PARTS)


def _packed(places: Mapping[str, str], parts: Sequence[str]) -> bytes:
    package = _package()
    found = {place: (package / name).read_bytes() for name, place in places.items()}
    for pattern in parts:
        for path in sorted(package.glob(pattern)):
            found[f"benchpool/{path.relative_to(package).as_posix()}"] = path.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in found.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text)
    return packed.getvalue()


def place(state: Path, data: bytes | None = None) -> Path:
    """Return the path of a file, by default that of jobs, below a folder.

    It depends on the content. What runs keeps the file with which it began when another version
    starts.
    """
    return state / "python" / hashlib.sha256(data or content()).hexdigest()[:12] / NAME


def lay_down(state: Path) -> None:
    """Write the file for jobs below a state folder. Raises OSError."""
    write(place(state), content())


def write(target: Path, data: bytes) -> None:
    """Write the file if it does not exist; all accounts may read it. Raises OSError."""
    if target.exists():
        return
    for folder in (target.parent.parent, target.parent):
        with suppress(FileExistsError):  # the creator of an existing folder decides its permissions
            folder.mkdir(parents=True)
            folder.chmod(0o755)
    aside = target.with_name(f".{NAME}.{os.urandom(8).hex()}")
    aside.write_bytes(data)
    aside.chmod(0o644)
    os.replace(aside, target)


def on_path(variables: Mapping[str, str], file: str) -> str:
    """Return a job's ``PYTHONPATH``: its own value, then the file.

    >>> on_path({}, "/s/benchpool.zip"), on_path({"PYTHONPATH": "/mine"}, "/s/benchpool.zip")
    ('/s/benchpool.zip', '/mine:/s/benchpool.zip')
    """
    return ":".join(filter(None, [variables.get("PYTHONPATH"), file]))


def _package() -> Path:
    """Return the folder of the sources; in a wheel that is not installed, the neighbouring one."""
    spec = importlib.util.find_spec("benchpool")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    return Path(__file__).resolve().parents[2] / "benchpool"
