"""Packages of a Python that are sent with a job, and those that cannot be."""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from benchpool.delta import locking, packing, probe
from benchpool_scheduler.client.imports.unseen import Unseen

PROBE_S = 30.0
BUILT = ("build", "dist", ".egg-info")
MOST_BYTES = 512 << 20
"""Limit for all wheels sent with a job, in bytes."""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """Package that the job's own index has: name, version, SHA-256 of its files."""

    name: str
    version: str
    sha256: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EnvironmentDelta:
    """Packages that a job's Python gets in addition to its image.

    Attributes:
        locked: Packages that an index has.
        wheels: Contents of the other packages' wheels, by file name.
        modules: Import names of all of them.
        left: Reason why a package cannot be sent, by its name.
        missed: Import names of those packages.
    """

    locked: tuple[LockedPackage, ...] = ()
    wheels: Mapping[str, bytes] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()
    left: Mapping[str, str] = field(default_factory=dict)
    missed: frozenset[str] = frozenset()

    @property
    def names(self) -> list[str]:
        """Packages that are sent, with their versions."""
        packed = [" ".join(name.split("-")[:2]) for name in self.wheels]
        return sorted([*(f"{one.name} {one.version}" for one in self.locked), *packed])


NOTHING = EnvironmentDelta()


def of(python: str, unseen: Unseen) -> EnvironmentDelta:
    """Return the packages to send with a job of this Python. May run its installer.

    Args:
        unseen: The parts of this machine that a job does not see; none on a single machine.
    """
    if not unseen.home or unseen.hides(python):
        return NOTHING
    try:
        done = subprocess.run(
            [python, probe.__file__], input=json.dumps(asdict(unseen)), cwd="/",
            capture_output=True, text=True, timeout=PROBE_S, check=True,
        )  # fmt: skip
        found = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return NOTHING
    return _made(python, json.dumps(found), _states(found)) if found else NOTHING


def _states(found: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return when the folders of editable projects last changed; a change causes a new build."""
    return tuple(_newest(folder) for each in found if (folder := _editable(each)) is not None)


def _newest(folder: str) -> int:
    newest = 0
    for top, folders, names in os.walk(folder):
        # Files left by a build are no change of the project.
        folders[:] = [
            it for it in folders if not it.startswith((".", "__")) and not it.endswith(BUILT)
        ]
        files = (Path(top, name) for name in names)
        newest = max([newest, *(it.lstat().st_mtime_ns for it in files)])
    return newest


@functools.lru_cache(maxsize=4)
def _made(python: str, found: str, states: tuple[int, ...]) -> EnvironmentDelta:
    """Lock and pack the packages. Cached, since the dialog previews before it sends."""
    packages: list[dict[str, Any]] = json.loads(found)
    wanted = [f"{each['name']}=={each['version']}" for each in packages if not each["source"]]
    hashes = locking.locked(python, wanted)
    locked, wheels, modules = [], dict[str, bytes](), set[str]()
    left, missed = dict[str, str](), set[str]()
    for each in packages:
        sums = () if each["source"] else hashes.get(each["name"].lower().replace("_", "-"), ())
        if sums:
            locked.append(LockedPackage(each["name"], each["version"], sums))
            modules.update(each["modules"])
            continue
        try:
            name, content = _wheel(python, each)
        except packing.CannotBePacked as why:
            left[each["name"]] = str(why)
            missed.update(each["modules"])
            continue
        if sum(map(len, wheels.values())) + len(content) > MOST_BYTES:
            left[each["name"]] = f"with it the wheels would exceed {MOST_BYTES >> 20} MiB"
            missed.update(each["modules"])
            continue
        wheels[name] = content
        modules.update(_modules(content))
    return EnvironmentDelta(tuple(locked), wheels, frozenset(modules), left, frozenset(missed))


def _wheel(python: str, package: Mapping[str, Any]) -> tuple[str, bytes]:
    folder = _editable(package)
    if folder is not None:
        return locking.built(python, folder)
    return packing.repacked(Path(package["folder"]))


def _editable(package: Mapping[str, Any]) -> str | None:
    source = package["source"]
    if not source or not source.get("dir_info", {}).get("editable"):
        return None
    return unquote(urlsplit(source["url"]).path)


def _modules(wheel: bytes) -> set[str]:
    names = zipfile.ZipFile(io.BytesIO(wheel)).namelist()
    heads = {
        name.partition("/")[0].partition(".")[0] for name in names if ".dist-info/" not in name
    }
    return {head for head in heads if head.isidentifier()}


def notebook_entries(delta: EnvironmentDelta) -> dict[str, object]:
    """Return the entries about these packages for the notebook of a job.

    >>> notebook_entries(NOTHING)
    {}
    """
    if not delta.locked and not delta.wheels:
        return {}
    locked = [[one.name, one.version, list(one.sha256)] for one in delta.locked]
    wheels = {name: hashlib.sha256(data).hexdigest() for name, data in delta.wheels.items()}
    return {"overlay": {"locked": locked, "wheels": wheels}}
