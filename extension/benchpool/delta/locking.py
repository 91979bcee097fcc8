"""Hashes and built wheels of packages, from uv or pip with the site's own settings.

The package sources come from the pip or uv settings of this machine, never from benchpool. No
address in their answers is stored.
"""

from __future__ import annotations

import configparser
import contextlib
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchpool.delta.packing import CannotBePacked

LOCK_S = 60.0
BUILD_S = 300.0

_HASHED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)((?:\s+--hash=sha256:[0-9a-f]{64})+)", re.MULTILINE)
_FOR_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
}
"""pip settings and the uv variables with the same meaning."""

NO_INDEX = "no-index"
_NO = frozenset({"", "0", "no", "off", "false"})


@dataclass(frozen=True, slots=True)
class UvSettings:
    """Variables and options that pass pip's settings to uv, which does not read them."""

    environ: Mapping[str, str]
    words: tuple[str, ...] = ()


def uv_beside(python: str) -> str | None:
    """Return the uv of this machine (on the path, or beside one of these Pythons), or None."""
    beside = [Path(each).with_name("uv") for each in (sys.executable, python)]
    here = next((str(each) for each in beside if os.access(each, os.X_OK)), None)
    return shutil.which("uv") or here


def settings_for_uv(environ: Mapping[str, str], texts: Sequence[str]) -> UvSettings:
    """Return the settings to pass to uv. Variables already set for uv stay.

    Args:
        texts: Contents of pip's files, in increasing precedence.

    >>> settings_for_uv({"PIP_NO_INDEX": "1"}, ["[global]\\nfind-links = /a\\n  /b\\n"])
    UvSettings(environ={'UV_FIND_LINKS': '/a,/b'}, words=('--no-index',))
    """
    settings: dict[str, str] = {}
    for text in texts:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(text)
        except configparser.Error:
            continue
        for section in ("global", "install"):
            settings |= dict(parser.items(section)) if parser.has_section(section) else {}
    settings |= {
        name: environ[_pip(name)] for name in (*_FOR_UV, NO_INDEX) if _pip(name) in environ
    }
    found = {}
    for name, variable in _FOR_UV.items():
        if settings.get(name) and variable not in environ:
            separator = "," if variable == "UV_FIND_LINKS" else " "
            found[variable] = separator.join(settings[name].split())
    closed = settings.get(NO_INDEX, "").lower() not in _NO
    return UvSettings(found, ("--no-index",) if closed else ())


def _pip(name: str) -> str:
    return f"PIP_{name.replace('-', '_').upper()}"


def pip_files(environ: Mapping[str, str], prefix: str) -> list[str]:
    """Read pip's configuration files and return their contents."""
    home = environ.get("HOME", "")
    places = [
        "/etc/pip.conf",
        f"{home}/.pip/pip.conf",
        f"{environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/pip/pip.conf",
        f"{prefix}/pip.conf",
        environ.get("PIP_CONFIG_FILE", ""),
    ]
    return [Path(each).read_text("utf-8", "replace") for each in places if os.path.isfile(each)]


def uv_settings(python: str) -> UvSettings:
    """Return the settings for uv on this machine, with the environment of this process."""
    prefix = str(Path(python).parent.parent)
    found = settings_for_uv(os.environ, pip_files(os.environ, prefix))
    return UvSettings({**os.environ, **found.environ}, found.words)


def locked(python: str, wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the SHA-256 of the files of each ``NAME==VERSION`` found, by lower-case name.

    Packages that are not found are left out. Uses that Python's pip if it has one, else uv.
    """
    try:
        together = _lock(python, wanted) if wanted else {}
    except subprocess.TimeoutExpired:
        return {}  # an index that does not answer
    if together is not None:
        return together
    found: dict[str, tuple[str, ...]] = {}
    for one in wanted if len(wanted) > 1 else ():
        with contextlib.suppress(subprocess.TimeoutExpired):
            found |= _lock(python, [one]) or {}
    return found


def _lock(python: str, wanted: Sequence[str]) -> dict[str, tuple[str, ...]] | None:
    """Return the hashes of all packages, or None if one is not found.

    Raises:
        TimeoutExpired: The installer took too long.
    """
    try:
        if _has_pip(python):
            words = [python, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps"]
            words += ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
            words += ["--retries", "1", "--timeout", "10", "--report", "-"]
            return _of_report(_run([*words, *wanted], dict(os.environ), "", LOCK_S))
        uv, settings = uv_beside(python), uv_settings(python)
        if uv is None:
            return None
        words = [uv, "pip", "compile", "-", "--no-deps", "--generate-hashes", "--no-header"]
        words += ["--no-annotate", "--quiet", "--python", python, *settings.words]
        return _of_lines(_run(words, settings.environ, "\n".join(wanted), LOCK_S))
    except (OSError, subprocess.CalledProcessError, ValueError, KeyError):
        return None


@functools.cache
def _has_pip(python: str) -> bool:
    words = [python, "-c", "import importlib.util as u; exit(u.find_spec('pip') is None)"]
    return subprocess.run(words, cwd="/", check=False, capture_output=True).returncode == 0


def _run(words: list[str], environ: Mapping[str, str], given: str, seconds: float) -> str:
    done = subprocess.run(
        words, input=given, env=dict(environ), cwd="/", capture_output=True, text=True,
        timeout=seconds, check=True,
    )  # fmt: skip
    return done.stdout


def _of_lines(text: str) -> dict[str, tuple[str, ...]]:
    """Return the hashes in a requirements file.

    >>> hashes = [f"--hash=sha256:{digit * 64}" for digit in "01"]
    >>> found = _of_lines(" \\\\\\n    ".join(["Six==1.17.0", *hashes]))
    >>> {name: len(each) for name, each in found.items()}
    {'six': 2}
    """
    joined = text.replace("\\\n", " ")
    return {
        name.lower().replace("_", "-"): tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes))
        for name, _, hashes in _HASHED.findall(joined)
    }


def _of_report(text: str) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for each in json.loads(text)["install"]:
        name = str(each["metadata"]["name"]).lower().replace("_", "-")
        found[name] = (str(each["download_info"]["archive_info"]["hashes"]["sha256"]),)
    return found


def built(python: str, folder: str) -> tuple[str, bytes]:
    """Return the name and content of the wheel of a project folder, built by its own settings.

    Raises:
        CannotBePacked: It cannot be built; the text is the builder's last line.
    """
    uv, settings = uv_beside(python), uv_settings(python)
    with tempfile.TemporaryDirectory(prefix="benchpool-wheel-") as out:
        if _has_pip(python) or uv is None:
            words = [python, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir", out]
            environ = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        else:
            words = [uv, "build", "--wheel", "--quiet", "--python", python, "--out-dir", out]
            words, environ = [*words, *settings.words], dict(settings.environ)
        try:
            _run([*words, folder], environ, "", BUILD_S)
            (made,) = Path(out).glob("*.whl")
        except subprocess.CalledProcessError as failed:
            lines = [line.strip() for line in (failed.stderr or "").splitlines() if line.strip()]
            reason = lines[-1] if lines else "it gave no reason"
            raise CannotBePacked(f"its wheel cannot be built ({reason[:200]})") from failed
        except (OSError, subprocess.SubprocessError, ValueError) as failed:
            raise CannotBePacked(f"its wheel cannot be built ({failed})") from failed
        return made.name, made.read_bytes()
