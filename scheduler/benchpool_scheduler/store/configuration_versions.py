"""The versions that the configuration had: a file each, written once.

    configurations/000000012.json       the twelfth: who, when, why, what it changed, its text

The largest number is the version in force. The oldest go when there are more than ``MOST``.
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
"""Where these files lie, in a copy too."""


class KeptVersion(msgspec.Struct, frozen=True):
    """A version with its text."""

    version: ConfigurationVersion
    text: str


@dataclass(frozen=True, slots=True)
class VersionFiles:
    """The folder of these files; all verbs block.

    Args:
        folder: Made with the first version, readable for the service's account alone.
    """

    folder: Path

    def add(self, version: ConfigurationVersion, text: str) -> ConfigurationVersion:
        """Keep the next version; it is on disk when this returns, with its number.

        Errors: OSError, then nothing is added.
        """
        numbers = self._numbers()
        numbered = msgspec.structs.replace(version, number=(numbers[-1] if numbers else 0) + 1)
        data = msgspec.json.encode(KeptVersion(numbered, text))
        whole_files.write(self._path(numbered.number), data)
        for old in numbers[: max(0, len(numbers) + 1 - MOST)]:
            self._path(old).unlink(missing_ok=True)
        return numbered

    def drop(self, number: int) -> None:
        """Take back a version that did not come into force."""
        with contextlib.suppress(OSError):
            self._path(number).unlink(missing_ok=True)

    def get(self, number: int) -> KeptVersion | None:
        """Return a version; None for one that is not there or cannot be read."""
        try:
            return msgspec.json.decode(self._path(number).read_bytes(), type=KeptVersion)
        except (OSError, msgspec.DecodeError):
            return None

    def newest(self, most: int = 1, before: int | None = None) -> Sequence[KeptVersion]:
        """Return the newest versions that can be read, the newest first.

        Args:
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
        """Return the numbers that are there, the smallest first."""
        names = (file.stem for file in self.folder.glob("*.json") if file.stem.isdecimal())
        return sorted(map(int, names))


def copy_into(versions: Path, folder: Path) -> int:
    """Put into a folder what it lacks of these files; return how many. Errors: OSError.

    A file is never written again, so that what has its name stays. Copies and restores are alike.
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
            continue  # the oldest go while it is copied
        new.chmod(0o600)
        new.rename(target)
        put += 1
    return put
