"""Recording of a run's environment while its cells run."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

LAST_S = 10.0
"""Maximum time that an ended notebook waits for the record, in seconds."""


class Recording:
    """Record of one run, see ``run_facts.RecordedRun``."""

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
        """Import the modules for recording, which is slow, in the calling thread.

        The recording thread must import nothing. Two threads that import modules which import each
        other end in ``_DeadlockError``, in either thread, and one of them runs the cells.
        """
        importlib.import_module("benchpool.runner.run_facts")

    def begin(self) -> None:
        """Start recording while the cells run. In a gang only the first worker records.

        The thread is never joined: a job that is asked to stop must not wait for it.
        """
        if os.environ.get("NODE_RANK", "0") == "0":
            self._loop = asyncio.get_running_loop()
            self._done = asyncio.Event()
            threading.Thread(target=self._run, daemon=True).start()

    async def end(self) -> None:
        """Wait up to ``LAST_S`` seconds until the record is written."""
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
