"""Values of a notebook's kernel that are sent with a job, as files among the job's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchpool_scheduler.contract import SnapshotFile
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.worker.records import VALUES

MOST_BYTES = 8 << 30
"""Limit for written values, in bytes; the pool's own limit is lower."""

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class LiveValues:
    """Written values: ``names`` with descriptions, the files, and their contents by hash."""

    names: tuple[str, ...] = ()
    files: tuple[SnapshotFile, ...] = ()
    contents: Mapping[str, Path | bytes] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Total size of the files, in bytes."""
        return sum(file.size for file in self.files)


def of_folder(folder: Path, report: str) -> LiveValues:
    """Return the values that a kernel wrote into a folder. The files stay there until the upload.

    Args:
        report: The answer of ``values.sending.write``.

    Raises:
        InvalidInput: A value cannot be sent; the message names it and the reason.
    """
    left_out = json.loads(report)["left_out"]
    if left_out:
        reasons = "; ".join(left_out.values())
        raise InvalidInput(
            f"Some values cannot be sent: {reasons}. Leave them out, so that their cells run again "
            "in the job, or allow pickles.",
            field="send",
        )
    files, contents = [], {}
    for path in sorted(folder.iterdir()):
        sha256 = _digest(path)
        files.append(SnapshotFile(f"{VALUES}/{path.name}", sha256, path.stat().st_size))
        contents[sha256] = path
    return LiveValues(tuple(json.loads(report)["names"]), tuple(files), contents)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
