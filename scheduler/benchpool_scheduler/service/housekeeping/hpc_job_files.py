"""Which job has which GPU, as files that dcgm-exporter reads: its figures then name the job.

dcgm-exporter (``--hpc-job-mapping-dir``) looks for a file called like the index of a GPU, which
holds the ids of jobs, a line each; it puts them into the label ``hpc_job``. Where pods hold the
GPUs it knows the pods by itself, so these files are written on one machine only.
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
"""Files that could not be written are written again after so many seconds."""


class HpcJobFiles:
    """The folder of files, kept as the ledger says; ``folder`` is made when it is first written."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, folder: Path) -> None:
        self._ledger = ledger
        self._observed = observed
        self._folder = folder
        self._changed = asyncio.Event()

    def moved(self, _: Collection[str]) -> None:
        """Write again: holders of GPUs may be others."""
        self._changed.set()

    def see(self, _: Observations) -> None:
        """Write again: there may be other GPUs."""
        self._changed.set()

    async def run(self) -> None:
        """Write at the beginning and after each change, for ever; on a cluster nothing."""
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
    """Return the id of the job on each GPU of the machine, by the GPU's index.

    Where several machines are simulated an index is no name of a GPU: nothing is returned.
    """
    if len(inventory.nodes) > 1:
        return {}
    held = ((inventory.by_uuid.get(gpu), job) for gpu, job in holders.items())
    return {device.index: job for device, job in held if device is not None}


def write(folder: Path, jobs: Mapping[int, str]) -> None:
    """Make the files of a folder say which job has which GPU. Errors: OSError."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    wanted = {str(index): f"{job}\n" for index, job in jobs.items()}
    for file in folder.iterdir():
        if file.name not in wanted:
            file.unlink()
    for name, text in wanted.items():
        file = folder / name
        if not file.exists() or file.read_text() != text:
            new = folder / f".{name}.new"  # one step: no reader sees half of an id
            new.write_text(text)
            new.replace(file)
