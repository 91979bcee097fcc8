"""The part of ``benchpool`` that every job can import, as one file on its path.

It is made from the sources of the installed package, so that nothing is written twice. Standard
library only; the same sources always give the same bytes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

PARTS = ("checkpoint/*.py", "metrics/*.py")
"""What of the package goes along: modules that import nothing but the standard library."""

PLACES = {
    "in_jobs.py": "benchpool/__init__.py",
    "job_startup.py": "sitecustomize.py",
    "job_stacks.py": "benchpool_stacks.py",
}
"""What stands there under another name: the package's beginning, and that of every Python."""

NAME = "benchpool.zip"
EPOCH = (1980, 1, 1, 0, 0, 0)


@cache
def content() -> bytes:
    """Return the file. Errors: OSError where the package's sources are not there."""
    package = _package()
    found = {place: (package / name).read_bytes() for name, place in PLACES.items()}
    for pattern in PARTS:
        for path in sorted(package.glob(pattern)):
            found[f"benchpool/{path.relative_to(package).as_posix()}"] = path.read_bytes()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in found.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text)
    return packed.getvalue()


def place(state: Path) -> Path:
    """Return where the file lies below a state folder: another content lies elsewhere.

    Jobs that run while another version starts keep the file that they began with.
    """
    return state / "python" / hashlib.sha256(content()).hexdigest()[:12] / NAME


def lay_down(state: Path) -> None:
    """Write the file below a state folder. Errors: OSError."""
    write(place(state), content())


def write(target: Path, data: bytes) -> None:
    """Write the file where it is not there yet; everybody may read it. Errors: OSError."""
    if target.exists():
        return
    for folder in (target.parent.parent, target.parent):
        with suppress(FileExistsError):  # who made it decides who reads it
            folder.mkdir(parents=True)
            folder.chmod(0o755)
    aside = target.with_name(f".{NAME}.{os.urandom(8).hex()}")
    aside.write_bytes(data)
    aside.chmod(0o644)
    os.replace(aside, target)


def on_path(variables: Mapping[str, str], file: str) -> str:
    """Return a job's ``PYTHONPATH``: what it has been given, then the file.

    >>> on_path({}, "/s/benchpool.zip"), on_path({"PYTHONPATH": "/mine"}, "/s/benchpool.zip")
    ('/s/benchpool.zip', '/mine:/s/benchpool.zip')
    """
    return ":".join(filter(None, [variables.get("PYTHONPATH"), file]))


def _package() -> Path:
    """Return the folder of the sources, beside ours in a wheel that is not installed."""
    spec = importlib.util.find_spec("benchpool")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent
    return Path(__file__).resolve().parents[2] / "benchpool"
