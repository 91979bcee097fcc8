"""Manifest of a checkpoint: its files by name, size and hash, and the check that all are there."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WHOLE = "benchpool.json"
PART = "benchpool.rank-{rank}.json"
"""Manifest of one rank's part, if ranks save together without a shared folder."""


def write(folder: Path, name: str, about: Mapping[str, object]) -> None:
    """Flush all files of a folder to disk, then write their manifest."""
    known = {}
    for path in files(folder):
        flush(path)
        inside = path.relative_to(folder).as_posix()
        known[inside] = {"size": path.stat().st_size, "sha256": _digest(path)}
    for inner in [path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]:
        flush(inner)
    manifest = {"version": 1, **about, "saved": time.time(), "files": known}
    path = folder / name
    path.write_text(json.dumps(manifest, indent=1), "utf-8")
    flush(path)
    flush(folder)


def fault(checkpoint: Path) -> str | None:
    """Return how a checkpoint differs from its manifests, or None if it is complete."""
    names = sorted(path.name for path in checkpoint.glob(PART.format(rank="*")))
    if not names:
        return _fault(checkpoint, WHOLE)
    return _parts(checkpoint, names) or next(
        filter(None, (_fault(checkpoint, name) for name in names)), None
    )


def _parts(checkpoint: Path, names: list[str]) -> str | None:
    """Return what is wrong between the parts (one is missing or of another commit), or None."""
    try:
        manifests = [json.loads((checkpoint / name).read_text("utf-8")) for name in names]
        away = sorted(set(range(manifests[0]["ranks"])) - {each["rank"] for each in manifests})
        commits = {(each["attempt"], each["commit"], each["step"]) for each in manifests}
    except (OSError, ValueError, KeyError, TypeError) as bad:
        return f"a part's manifest cannot be read: {bad}"
    if away:
        return f"the part of rank {', '.join(map(str, away))} is missing"
    return "its parts were not saved at the same time" if len(commits) > 1 else None


def _fault(checkpoint: Path, manifest_name: str) -> str | None:
    try:
        manifest: Any = json.loads((checkpoint / manifest_name).read_text("utf-8"))
        known: dict[str, dict[str, Any]] = manifest["files"]
        for name, entry in known.items():
            path = checkpoint / name
            size = path.stat().st_size
            if size != entry["size"]:
                return f"{name} has {size} of {entry['size']} bytes"
            if _digest(path) != entry["sha256"]:
                return f"{name} differs from its saved content"
    except FileNotFoundError as missing:
        return f"{Path(str(missing.filename)).name} is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as bad:
        return f"{manifest_name} cannot be read: {bad}"
    return None


def files(folder: Path) -> list[Path]:
    """Return the program's own files of a checkpoint, sorted."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and path.name != WHOLE and not _is_part(path.name)
    )


def _is_part(name: str) -> bool:
    first, last = PART.split("{rank}")
    return name.startswith(first) and name.endswith(last)


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while True:
            piece = file.read(1 << 20)
            if not piece:
                return digest.hexdigest()
            digest.update(piece)


def flush(path: Path) -> None:
    """Flush a file or folder to disk."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
