"""The versions of the configuration: a file each, written once.

    configurations/000000012.json       version 12: user, time, reason, changes and text

The largest number is the version in force. Beyond ``MOST`` versions, the oldest are deleted.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchpool_scheduler.contract.configuration import ConfigurationVersion
from benchpool_scheduler.store import whole_files

MOST = 1000
FOLDER = "configurations"
NAME = re.compile(rf"{FOLDER}/[0-9]{{9}}\.json")
"""Pattern of the paths of these files, in a backup too."""


class KeptVersion(msgspec.Struct, frozen=True):
    """Version of the configuration with its text."""

    version: ConfigurationVersion
    text: str


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """Folder of the version files; all methods block.

    Args:
        folder: Created with the first version, readable for the service's account alone.
    """

    folder: Path

    def add(self, version: ConfigurationVersion, text: str) -> ConfigurationVersion:
        """Write the next version and return it with its number; it is on disk when this returns.

        Errors: OSError, and then nothing is added.
        """
        numbers = self._numbers()
        numbered = msgspec.structs.replace(version, number=(numbers[-1] if numbers else 0) + 1)
        data = msgspec.json.encode(KeptVersion(numbered, text))
        whole_files.write(self._path(numbered.number), data)
        for old in numbers[: max(0, len(numbers) + 1 - MOST)]:
            self._path(old).unlink(missing_ok=True)
        return numbered

    def drop(self, number: int) -> None:
        """Delete a version that did not come into force."""
        with contextlib.suppress(OSError):
            self._path(number).unlink(missing_ok=True)

    def get(self, number: int) -> KeptVersion | None:
        """Return a version, or None when it is missing or cannot be read."""
        try:
            return msgspec.json.decode(self._path(number).read_bytes(), type=KeptVersion)
        except (OSError, msgspec.DecodeError):
            return None

    def newest(self, most: int = 1, before: int | None = None) -> Sequence[KeptVersion]:
        """Return the newest readable versions, the newest first.

        Args:
            most: Maximum number of versions.
            before: Only versions with smaller numbers.
        """
        found: list[KeptVersion] = []
        for number in reversed(self._numbers()):
            if len(found) == most:
                break
            if before is None or number < before:
                kept = self.get(number)
                found += [] if kept is None else [kept]
        return found

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:09}.json"

    def _numbers(self) -> list[int]:
        """Return the numbers of the stored versions in ascending order."""
        names = (file.stem for file in self.folder.glob("*.json") if file.stem.isdecimal())
        return sorted(map(int, names))


def copy_into(versions: Path, folder: Path) -> int:
    """Copy missing version files into a folder and return their number. Errors: OSError.

    A file is never written again, so existing files stay. Backup and restore both use this.
    """
    put = 0
    for file in sorted(versions.glob("*.json")):
        target = folder / file.name
        if target.exists():
            continue
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = target.with_name(f".{target.name}.new")
        try:
            shutil.copyfile(file, new)
        except FileNotFoundError:
            continue  # deleted as one of the oldest during the copy
        new.chmod(0o600)
        new.rename(target)
        put += 1
    return put
