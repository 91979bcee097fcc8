"""Benches that administrators want to reclaim, kept in a file until the bench is released."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec

from benchpool_scheduler.contract import ReclaimRequest
from benchpool_scheduler.store import whole_files


class ReclaimRequests:
    """Reclaim requests for benches, by lease ID.

    Args:
        file: File that stores the requests. An unreadable file counts as no requests.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = asyncio.Lock()
        self._kept: Mapping[str, ReclaimRequest] | None = None

    def all(self) -> Mapping[str, ReclaimRequest]:
        """Return all reclaim requests, by lease ID."""
        if self._kept is None:
            try:
                self._kept = msgspec.json.decode(
                    self._file.read_bytes(), type=dict[str, ReclaimRequest]
                )
            except (OSError, msgspec.DecodeError):
                self._kept = {}
        return self._kept

    async def ask(self, lease: str, asked: ReclaimRequest, leases: Collection[str]) -> None:
        """Store a reclaim request and drop those of leases that no longer exist. Errors: OSError.

        Args:
            leases: The IDs of all existing leases.
        """
        async with self._lock:
            there = {it: each for it, each in self.all().items() if it in leases}
            kept = {**there, lease: asked}
            await asyncio.to_thread(whole_files.write, self._file, msgspec.json.encode(kept))
            self._kept = kept
