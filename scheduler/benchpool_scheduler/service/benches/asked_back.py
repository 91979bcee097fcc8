"""Benches that administrators ask for: kept in a file of its own until the bench is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from benchpool_scheduler.contract import AskedBack
from benchpool_scheduler.store import whole_files


class AskedBenches:
    """Who asked for which bench, by the id of its lease.

    Args:
        file: Where it is kept. One that cannot be read asks for nothing: it is asked again.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = asyncio.Lock()
        self._kept: Mapping[str, AskedBack] | None = None

    def all(self) -> Mapping[str, AskedBack]:
        """Return all that is asked."""
        if self._kept is None:
            try:
                self._kept = msgspec.json.decode(self._file.read_bytes(), type=dict[str, AskedBack])
            except (OSError, msgspec.DecodeError):
                self._kept = {}
        return self._kept

    async def ask(self, lease: str, asked: AskedBack, leases: Collection[str]) -> None:
        """Keep what is asked; what belongs to none of these leases is forgotten. Errors: OSError.

        Args:
            leases: The ids of all that there are.
        """
        async with self._lock:
            there = {it: each for it, each in self.all().items() if it in leases}
            kept = {**there, lease: asked}
            await asyncio.to_thread(whole_files.write, self._file, msgspec.json.encode(kept))
            self._kept = kept
