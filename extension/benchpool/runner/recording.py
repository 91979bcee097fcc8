"""Records what a run has around it, while its cells run."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

LAST_S = 10.0
"""How long a notebook that has ended waits for the record."""


class Recording:
    """One run's record, see ``run_facts.RecordedRun``."""

    def __init__(
        self,
        interpreter: str,
        folder: Path,
        cells: Sequence[tuple[int, str]],
        modules: Mapping[str, str],
        output: Path,
    ) -> None:
        self._facts = (interpreter, folder, cells, modules, output)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._done: asyncio.Event | None = None

    @staticmethod
    def load() -> None:
        """Load what recording needs, which is slow, in the thread that calls.

        The recording's own thread must load nothing: two threads that load modules which load one
        another end in ``_DeadlockError``, in either of them, and one of them runs the cells.
        """
        importlib.import_module("benchpool.runner.run_facts")

    def begin(self) -> None:
        """Begin, beside the cells; of a gang the first worker records.

        In a thread that nothing waits for: a job that is told to stop must not wait for it.
        """
        if os.environ.get("NODE_RANK", "0") == "0":
            self._loop = asyncio.get_running_loop()
            self._done = asyncio.Event()
            threading.Thread(target=self._run, daemon=True).start()

    async def end(self) -> None:
        """Wait for a moment until it is written."""
        if self._done is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_S):
                    await self._done.wait()

    def _run(self) -> None:
        from benchpool.runner import run_facts

        run_facts.record(run_facts.RecordedRun(*self._facts))
        if self._loop is not None and self._done is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._done.set)
