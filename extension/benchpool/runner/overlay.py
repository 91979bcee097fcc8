"""Installs the packages sent with a notebook, for the Python of its kernel.

They are installed into a separate folder before the image's packages on the path, by uv or else by
pip, from the site's index. The folder is named after its content, so a later attempt or job of the
same user that finds it installs nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchpool.delta.locking import uv_beside, uv_settings
from benchpool.runner.interpreter import CannotStart, Interpreter
from benchpool_scheduler.phrases import count
from benchpool_scheduler.worker.records import WHEELS_VARIABLE

INSTALL_S = 1800.0
KEPT_S = 30 * 86400.0
"""Time after which an unused folder is deleted by the next job, in seconds."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,100}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@contextlib.contextmanager
def overlaid(overlay: object, kernel: Interpreter) -> Iterator[None]:
    """Make the sent packages available to every Python started in this context.

    Raises:
        CannotStart: A package cannot be installed; the text gives its name and the reason.
    """
    if not isinstance(overlay, dict):
        yield
        return
    requirements = _requirements(overlay, Path(os.environ.get(WHEELS_VARIABLE, ".")))
    folder = _installed(requirements, kernel)
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", "PATH")}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [before["PYTHONPATH"], str(folder)]))
    os.environ["PATH"] = os.pathsep.join(filter(None, [str(folder / "bin"), before["PATH"]]))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _requirements(overlay: Mapping[str, Any], wheels: Path) -> list[tuple[str, str]]:
    """Return the lines of a requirements file: packages and their hashes."""
    found = []
    try:
        for name, version, hashes in overlay.get("locked", []):
            fits = _NAME.fullmatch(name) and _VERSION.fullmatch(version) and hashes
            if not fits or not all(_SHA256.fullmatch(each) for each in hashes):
                raise ValueError(name)
            found.append((f"{name}=={version}", " ".join(f"--hash=sha256:{it}" for it in hashes)))
        for name, sha256 in overlay.get("wheels", {}).items():
            if not _NAME.fullmatch(name) or not _SHA256.fullmatch(sha256):
                raise ValueError(name)
            found.append((str(wheels / name), f"--hash=sha256:{sha256}"))
    except (TypeError, ValueError, AttributeError) as bad:
        raise CannotStart(f"the list of packages in the notebook cannot be read: {bad}") from bad
    return found


def _installed(requirements: list[tuple[str, str]], kernel: Interpreter) -> Path:
    named = json.dumps([kernel.version, sorted(hashes for _, hashes in requirements)])
    place = _place()
    folder = place / hashlib.sha256(named.encode()).hexdigest()[:32]
    with _alone(place / f"{folder.name}.lock"):
        if not folder.is_dir():
            _forget_old(place)
            packages = count(len(requirements), "package")
            print(f"benchpool: installing {packages} sent with the job", flush=True)
            part = Path(tempfile.mkdtemp(prefix=".part-", dir=place))
            try:
                _install(requirements, kernel, part / "made")
                (part / "made").rename(folder)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        os.utime(folder)
    return folder


def _place() -> Path:
    """Return the parent of such folders: the user's cache, where no other user may write."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    place = Path(cache, "benchpool", "overlays")
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.access(place, os.W_OK):
            return place
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="benchpool-overlays-"))


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Lock a folder, so that only one worker of a gang installs into it at a time."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _forget_old(place: Path) -> None:
    for folder in place.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)


def _install(requirements: list[tuple[str, str]], kernel: Interpreter, target: Path) -> None:
    file = target.with_name("requirements.txt")
    file.write_text("".join(f"{what} {hashes}\n" for what, hashes in requirements), "utf-8")
    uv = uv_beside(kernel.path)
    if uv is not None:
        settings = uv_settings(kernel.path)
        words = [uv, "pip", "install", "--python", kernel.path, "--link-mode", "copy"]
        words, environ = [*words, *settings.words], dict(settings.environ)
    else:
        words = [kernel.path, "-m", "pip", "install", "--disable-pip-version-check"]
        environ = dict(os.environ)
    words += ["--quiet", "--no-deps", "--require-hashes", "--target", str(target), "-r", str(file)]
    try:
        subprocess.run(
            words, env=environ, cwd="/", check=True, capture_output=True, text=True,
            timeout=INSTALL_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.CalledProcessError as failed:
        output = (failed.stderr or failed.stdout or "it gave no reason").strip()
        raise CannotStart(
            f"the packages sent with the job cannot be installed:\n{output}"
        ) from failed
    except (OSError, subprocess.SubprocessError) as failed:
        raise CannotStart(
            f"the packages sent with the job cannot be installed: {failed}"
        ) from failed
