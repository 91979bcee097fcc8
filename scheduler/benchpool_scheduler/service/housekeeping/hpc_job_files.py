"""Files with the job on each GPU for dcgm-exporter, whose metrics then name the job.

dcgm-exporter (``--hpc-job-mapping-dir``) reads a file per GPU, named after the GPU's index, with
one job ID a line. It adds them as label ``hpc_job``. On a cluster it finds the pods by itself, so
these files are written on a single machine only.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.inventory import Inventory
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import SchedulerState

log = logging.getLogger(__name__)

AGAIN_S = 60.0
"""Delay before a failed write is tried again, in seconds."""


class HpcJobFiles:
    """Folder of the files, kept in step with the ledger; created by the first write."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, folder: Path) -> None:
        self._ledger = ledger
        self._observed = observed
        self._folder = folder
        self._changed = asyncio.Event()

    def moved(self, _: Collection[str]) -> None:
        """Write again, since holders of GPUs may have changed."""
        self._changed.set()

    def see(self, _: Observations) -> None:
        """Write again, since the GPUs may have changed."""
        self._changed.set()

    async def run(self) -> None:
        """Write the files at the start and after each change, until cancelled; return on a
        cluster.
        """
        if self._observed.settings.containers is not None:
            return
        while True:
            self._changed.clear()
            jobs = jobs_by_index(self._observed.now.inventory, self._ledger.counters.holders)
            try:
                await asyncio.to_thread(write, self._folder, jobs)
            except OSError as fault:
                log.warning("the files for dcgm-exporter could not be written (%s)", fault)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(AGAIN_S):
                        await self._changed.wait()
            else:
                await self._changed.wait()


def jobs_by_index(inventory: Inventory, holders: Mapping[str, str]) -> Mapping[int, str]:
    """Return the job ID on each GPU of the machine, by the GPU's index.

    With several simulated machines an index does not identify a GPU, so the result is empty.
    """
    if len(inventory.nodes) > 1:
        return {}
    held = ((inventory.by_uuid.get(gpu), job) for gpu, job in holders.items())
    return {device.index: job for device, job in held if device is not None}


def write(folder: Path, jobs: Mapping[int, str]) -> None:
    """Write the job of each GPU into the files of a folder. Errors: OSError."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    wanted = {str(index): f"{job}\n" for index, job in jobs.items()}
    for file in folder.iterdir():
        if file.name not in wanted:
            file.unlink()
    for name, text in wanted.items():
        file = folder / name
        if not file.exists() or file.read_text() != text:
            new = folder / f".{name}.new"  # atomic, so that readers see whole IDs
            new.write_text(text)
            new.replace(file)
