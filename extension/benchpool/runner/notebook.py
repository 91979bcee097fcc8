"""One run of a notebook: cell by cell, until its end, an error, or a stop request."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError

from benchpool.runner import keeping, messages
from benchpool.runner.cell_places import CellPlaces
from benchpool.runner.cell_progress import CellProgress
from benchpool.runner.heading import heading_of
from benchpool.runner.interpreter import Interpreter
from benchpool.runner.keeping import Keeper
from benchpool.runner.kernels import Cells, Kernel, Message
from benchpool.runner.recording import Recording
from benchpool.runner.saving import Copy
from benchpool.runner.shown_bars import ShownBars

STOPPED = 128 + signal.SIGTERM
FAILED = 1
STOPPING = "getattr(__import__('sys').modules.get('benchpool.checkpoint.votes'), 'stopping', False)"
"""Expression for the kernel: did ``checkpoint.should_stop()`` return true?"""


@dataclass(frozen=True, slots=True)
class Failure:
    """Exception that ended a cell."""

    name: str
    value: str


MAGIC = re.compile(r"^\s*(?:[\w, ]+=\s*)?%(?!tb\b)", re.MULTILINE)
"""A magic, except the one that shows a traceback."""


def hidden_failure(cell: Any) -> Failure | None:
    """Return the exception shown by a cell that succeeded, or None.

    ``%run`` and ``%%time`` show the traceback of the code they run and raise nothing. Without a
    magic, the cell itself chose to show one.
    """
    if not MAGIC.search(cell.source) or "raises-exception" in cell.metadata.get("tags", ()):
        return None
    shown = [it for it in cell.outputs if it.output_type == "error"]
    return Failure(shown[-1].ename, shown[-1].evalue) if shown else None


def exit_of_error(failure: Failure, stop_requested: bool) -> int:
    """Return the exit status after a cell raised.

    ``SystemExit`` has its own status, as in a script. After a stop request any other exception
    counts as paused, since an interrupted program may raise any exception.

    >>> exit_of_error(Failure("SystemExit", "75"), stop_requested=True)
    75
    >>> exit_of_error(Failure("SystemExit", ""), stop_requested=False)
    0
    >>> exit_of_error(Failure("ValueError", "bad"), stop_requested=False)
    1
    """
    if failure.name == "SystemExit":
        value = failure.value.strip()
        if value in {"", "None"}:
            return 0
        return int(value) & 0xFF if value.lstrip("-").isdecimal() else FAILED
    return STOPPED if stop_requested else FAILED


class NotebookRun:
    """Run of a notebook with an interpreter in a folder, with an executed copy."""

    def __init__(
        self,
        notebook: nbformat.NotebookNode,
        kernel: Interpreter,
        *,
        folder: Path,
        copy: Path,
        modules: Mapping[str, str],
    ) -> None:
        self._notebook = notebook
        self._code = [
            number
            for number, cell in enumerate(notebook.cells)
            if cell.cell_type == "code" and cell.source.strip()
        ]
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        sent: Any = notebook.metadata.get("benchpool", {})
        sent = sent if isinstance(sent, dict) else {}
        path = sent.get("path")
        self._keeper = Keeper(sent.get("keep"), os.environ)
        begun = datetime.now(timezone.utc)  # noqa: UP017 (Python 3.9)
        self._copy = Copy(notebook, copy, heading_of(os.environ, path, begun))
        self._progress = CellProgress(len(self._code))
        self._kernel = Kernel(kernel.path, folder)
        self._cells = Cells(notebook, self._kernel.manager, self._take)
        code = [(self._number(index), notebook.cells[index].source) for index in self._code]
        self._recording = Recording(kernel.path, folder, code, modules, copy.parent)
        self._budgets: dict[int, messages.Budget] = {}
        self._places = CellPlaces()
        self._bars = ShownBars()
        self._signalled = False
        self._at_line_start = True
        self._ends_in_bar = False

    async def run(self) -> int:
        """Run the notebook and return the exit status."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._terminate)
        try:
            await self._kernel.start(self._cells, self._recording.load)
        except Exception as failed:  # the kernel may fail in any way before it answers
            return self._not_started(failed)
        try:
            if not await self._loaded():
                return FAILED
            self._write_language()
            self._recording.begin()
            return await self._kept(await self._all_cells())
        finally:
            if not self._stop_requested():
                await self._recording.end()
            self._cells.set_widgets_metadata()
            self._copy.save()
            await self._kernel.end(self._cells)

    def _write_language(self) -> None:
        """Write the language that runs into the copy; the kernel name stays the submitter's."""
        language = self._cells.kc.language_info
        if language:
            self._notebook.metadata["language_info"] = nbformat.from_dict(language)

    async def _all_cells(self) -> int:
        for finished, index in enumerate(self._code):
            if self._stop_requested():
                return self._paused()
            self._progress.at(finished, self._number(index))
            self._log(f"cell {self._number(index)} ({finished + 1} of {len(self._code)})")
            status = await self._one_cell(index)
            if status is not None:
                return status
        self._progress.at(len(self._code), 0)
        # A stop request during the last cell: it counts as finished unless the code agreed to stop.
        if self._stop_requested() and await self._agreed_to_stop():
            return self._paused()
        return 0

    async def _loaded(self) -> bool:
        """Load the values that came with the job; return whether it can continue."""
        folder = os.environ.get("BENCHPOOL_VALUES_DIR")
        if folder is None:
            return True
        done, text = await keeping.load(self._cells, folder)
        self._log(text)
        return done

    async def _kept(self, status: int) -> int:
        """Store the values left by the cells, also those before a failed cell; return the status.

        After a stop request there is no time for it; the next attempt stores them.
        """
        if self._stop_requested() or not self._keeper.keeps or self._kernel.status() is not None:
            return status
        lines = await self._keeper.keep(self._cells, self._kernel)
        if lines is None and self._stop_requested():
            return self._paused()
        for line in ["the kernel ended while values were saved"] if lines is None else lines:
            self._log(line)
        return status

    async def _one_cell(self, index: int) -> int | None:
        """Run a cell; return an exit status to end with, or None to continue."""
        cell = self._notebook.cells[index]
        try:
            await self._cells.async_execute_cell(cell, index)
        except CellExecutionError as failed:
            return self._failed(index, Failure(failed.ename, failed.evalue))
        except DeadKernelError:
            return await self._died(index)
        finally:
            self._copy.changed()
        hidden = hidden_failure(cell)
        return None if hidden is None else self._failed(index, hidden)

    def _failed(self, index: int, failure: Failure) -> int:
        status = exit_of_error(failure, self._stop_requested())
        if failure.name == "SystemExit":
            self._log(f"cell {self._number(index)} ended the notebook with exit code {status}")
            return status
        for output in self._notebook.cells[index].outputs:
            if output.output_type == "error":
                traceback = messages.plain("\n".join(output.traceback))
                self._write(self._places.renumbered(traceback) + "\n")
        value = messages.first_line(failure.value)
        where = messages.line_of(self._notebook.cells[index].outputs)
        self._log(f"cell {self._number(index)} failed: {failure.name}: {value}{where}")
        return status

    async def _died(self, index: int) -> int:
        status = self._kernel.status()
        if self._stop_requested():
            return self._paused()
        number = -status if status is not None and status < 0 else None
        how = f" by signal {number}" if number else f" with exit code {status or 0}"
        hint = ": the usual cause is too little memory" if number == signal.SIGKILL else ""
        self._log(f"the kernel ended in cell {self._number(index)}{how}{hint}")
        return 128 + number if number else status or FAILED

    def _not_started(self, failed: Exception) -> int:
        self._copy.save()
        if self._stop_requested():
            return self._paused()
        self._log(f"the notebook's kernel did not start: {failed}")
        return FAILED

    def _paused(self) -> int:
        self._log("stopped on request; the executed copy has the output so far")
        return STOPPED

    # ------------------------------------------------------------------ to stop

    def _terminate(self) -> None:
        self._signalled = True
        self._kernel.terminate()

    def _stop_requested(self) -> bool:
        notice = os.environ.get("BENCHPOOL_NOTICE_FILE")
        return self._signalled or (notice is not None and Path(notice).exists())

    async def _agreed_to_stop(self) -> bool:
        client = self._cells.kc
        try:
            reply = await client.execute_interactive(
                "",
                silent=True,
                store_history=False,
                user_expressions={"told": STOPPING},
                timeout=10,
            )
        except Exception:  # a kernel that does not answer has not finished well
            return True
        answer = reply["content"].get("user_expressions", {}).get("told", {})
        return bool(answer.get("data", {}).get("text/plain") == "True")

    # ------------------------------------------------------------------ the log

    def _take(self, message: Message, index: int) -> Message | None:
        """Log a message; return the part that the copy keeps."""
        kind, content = message["msg_type"], message["content"]
        if kind == "execute_input":
            self._places.begins(self._number(index), content["code"], content["execution_count"])
        self._show(kind, content)
        kept = self._budgets.setdefault(index, messages.Budget()).take(kind, content)
        self._copy.changed()
        return None if kept is None else {**message, "content": kept}

    def _number(self, index: int) -> int:
        """Return the cell's number on the submitter's screen."""
        known: Any = self._notebook.cells[index].metadata.get("benchpool", {})
        number = known.get("number") if isinstance(known, dict) else None
        return number if isinstance(number, int) else index + 1

    def _show(self, kind: str, content: Mapping[str, Any]) -> None:
        """Write a message to the log; a progress bar stays one line."""
        now = time.monotonic()
        text = self._places.printed(messages.text_of(kind, content))
        bar = self._bars.line(kind, content, now)
        if text and self._ends_in_bar and not text.startswith("\r"):
            text = f"\n{text}"
        self._write(text + bar)
        if text or bar:
            self._ends_in_bar = bool(bar)
            self._progress.drawn(text + bar, now)

    def _log(self, text: str) -> None:
        newline = "" if self._at_line_start else "\n"
        self._ends_in_bar = False
        self._write(f"{newline}benchpool: {text}\n")

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")
