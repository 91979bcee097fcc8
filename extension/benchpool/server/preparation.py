"""What would be sent, and what the pool says to it: the answer for the dialog."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from benchpool import checkpoint_detection, drafts, notebooks
from benchpool.cells import NotebookCell
from benchpool.drafts import Draft
from benchpool.kernel_environment import KernelEnvironment, kernel_environment
from benchpool.server import interpreters
from benchpool.server.pool_access import PoolAccess
from benchpool.server.requests import (
    Checkpoint,
    Files,
    LeftOutFile,
    Preparation,
    PreparedCell,
    Refusal,
    SaidProblem,
    SendRequest,
)
from benchpool.server.served_folder import ServedFolder
from benchpool_scheduler.client import snapshot
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

T = TypeVar("T")

PREVIEW_S = 2.0
FILES_S = 1.0
"""How long the dialog waits for the pool, and for the list of files."""

KNOWN_S = 5.0
"""For how long a list of files is good: the dialog asks again with each answer changed."""

LEFT_OUT_SAID = 200
SCRIPT_BYTES = 1 << 20


@dataclass(slots=True)
class Preparer:
    """Prepares and drafts for one notebook server; ``usual_kernel`` is for code without one."""

    served: ServedFolder
    specs: Any
    pool: PoolAccess
    usual_kernel: str
    _here: KernelEnvironment = field(default_factory=lambda: kernel_environment(os.environ))
    _surveys: dict[Path, tuple[float, asyncio.Task[snapshot.Survey]]] = field(default_factory=dict)

    async def prepare(self, request: SendRequest) -> Preparation:
        """Answer the dialog.

        Raises:
            InvalidInput, NotFound: There is nothing to send by this path.
        """
        problems: list[SaidProblem] = []
        interpreter = self._interpreter(request, problems)
        draft = await self._draft(request, interpreter or "python3")
        script = self.served.file(request.path) if request.kind == "script" else None
        files, preview, quota = await asyncio.gather(
            self._files(script, problems),
            _outcome(self.pool.ask(lambda pool: pool.preview(_asked(draft, script)), PREVIEW_S)),
            _outcome(self.pool.ask(lambda pool: pool.quota(), PREVIEW_S)),
        )
        said = [SaidProblem(p.level, _sentence(p.text), p.cell, p.line) for p in draft.problems]
        refused = preview if isinstance(preview, BenchpoolError) else None
        cells = draft.selection.cells if draft.selection else ()
        folder = Path(draft.submission.output_dir or "").parents[1]
        name = draft.submission.name or "job"
        return Preparation(
            name=name,
            cells=[PreparedCell(c.id, c.index, c.included, c.selected, c.why) for c in cells],
            problems=[*problems, *said],
            interpreter=interpreter,
            working_dir=self.served.relative(folder),
            output_dir=f"{drafts.RESULTS}/{drafts.plain(name)}-…",
            files=files,
            command=drafts.command(draft),
            preview=None if isinstance(preview, BenchpoolError) else preview,
            refusal=None if refused is None else _refusal(refused),
            quota=None if isinstance(quota, BenchpoolError) else quota,
            checkpoint=self._checkpoint(draft, script),
        )

    async def to_send(self, request: SendRequest) -> Draft:
        """Return what is sent, with all files. Errors: as ``prepare``, and of the analysis."""
        interpreter = self._python(request)
        draft = await self._draft(request, interpreter, with_files=True)
        return draft.check()

    async def _draft(
        self, request: SendRequest, interpreter: str, *, with_files: bool = False
    ) -> Draft:
        options = request.options()
        if request.kind == "script":
            script = self.served.file(request.path)
            files = None
            if with_files:
                files = await asyncio.to_thread(snapshot.take, script.parent, must=[script.name])
            return drafts.of_script(
                script, request.args, options, kind="script", interpreter=interpreter,
                path=request.path, files=files, here=self._here,
            )  # fmt: skip
        return await asyncio.to_thread(
            drafts.of_cells,
            await self._cells(request),
            options,
            kind=request.kind,
            folder=self.served.folder_of(request.path).resolve(),
            interpreter=interpreter,
            path=request.path,
            whole=request.kind == "notebook",
            here=self._here,
            to_send=with_files,
        )

    async def _cells(self, request: SendRequest) -> list[NotebookCell]:
        if request.cells is not None:
            return [each.as_cell() for each in request.cells]
        if request.kind == "cells":
            raise InvalidInput("No cells were sent: select some in the notebook.", field="cells")
        return await asyncio.to_thread(notebooks.read, self.served.file(request.path))

    def _interpreter(self, request: SendRequest, problems: list[SaidProblem]) -> str | None:
        try:
            return self._python(request)
        except InvalidInput as no_python:
            problems.append(SaidProblem("error", no_python.message))
            return None

    def _python(self, request: SendRequest) -> str:
        return interpreters.of_kernel(self.specs, request.kernel_name or self.usual_kernel)

    # ------------------------------------------------------------------ files

    async def _files(self, script: Path | None, problems: list[SaidProblem]) -> Files | None:
        if script is None:
            return None
        try:
            survey = await asyncio.wait_for(asyncio.shield(self._survey(script)), FILES_S)
        except TimeoutError:
            text = f"the folder {script.parent.name} is large: its files are still being listed"
            problems.append(SaidProblem("warning", text))
            return None
        except BenchpoolError as refused:
            problems.append(SaidProblem("error", refused.message))
            return None
        left = [LeftOutFile(each.path, each.why) for each in survey.left_out[:LEFT_OUT_SAID]]
        return Files(survey.count, survey.bytes, left)

    def _survey(self, script: Path) -> asyncio.Task[snapshot.Survey]:
        now = time.monotonic()
        self._surveys = {
            path: known for path, known in self._surveys.items() if now - known[0] < KNOWN_S
        }
        if script not in self._surveys:
            walk = asyncio.to_thread(snapshot.survey, script.parent, must=[script.name])
            self._surveys[script] = (now, asyncio.ensure_future(walk))
        return self._surveys[script][1]

    def _checkpoint(self, draft: Draft, script: Path | None) -> Checkpoint:
        if script is not None:
            with script.open("rb") as file:
                sources = [file.read(SCRIPT_BYTES).decode("utf-8", "replace")]
        else:
            chosen = draft.selection.cells if draft.selection else ()
            sources = [each.run for each in chosen if each.included]
        seen = checkpoint_detection.detect(sources)
        return Checkpoint(seen.found, seen.text)


def _asked(draft: Draft, script: Path | None) -> JobSubmission:
    """Return what the pool is asked about: a script stands in its folder, uncopied as yet."""
    if script is None:
        return draft.submission
    return replace(draft.submission, working_dir=str(script.parent))


async def _outcome(asked: Awaitable[T]) -> T | BenchpoolError:
    try:
        return await asked
    except BenchpoolError as failed:
        return failed


def _refusal(error: BenchpoolError) -> Refusal:
    return Refusal(error.code, error.message, error.field, error.numbers)


def _sentence(text: str) -> str:
    """Return a problem's text as the dialog shows it, after the name of the cell."""
    return text if text.endswith((".", "?")) else f"{text}."
