"""What would be sent, and what the pool says to it: the answer for the dialog."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from benchpool import checkpoint_detection, drafts, import_problems, notebooks
from benchpool.cells import NotebookCell, Problem
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
K = TypeVar("K")

PREVIEW_S = 2.0
FILES_S = 1.0
IMPORTS_S = 1.5
"""How long the dialog waits for the pool, the list of files, and the Python of the job."""

KNOWN_S = 5.0
"""For how long a list of files, or what is known of imports, is good: the dialog asks again with
each answer changed."""

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
    _imports: dict[str, tuple[float, asyncio.Task[list[Problem]]]] = field(default_factory=dict)

    async def prepare(self, request: SendRequest) -> Preparation:
        """Answer the dialog.

        Raises:
            InvalidInput, NotFound: There is nothing to send by this path.
        """
        problems: list[SaidProblem] = []
        interpreter = self._interpreter(request, problems)
        draft = await self._draft(request, interpreter or "python3")
        script = self.served.file(request.path) if request.kind == "script" else None
        files, imports, preview, quota = await asyncio.gather(
            self._files(script, problems),
            self._import_problems(draft, script, interpreter),
            _outcome(self.pool.ask(lambda pool: pool.preview(_asked(draft, script)), PREVIEW_S)),
            _outcome(self.pool.ask(lambda pool: pool.quota(), PREVIEW_S)),
        )
        found = import_problems.in_order([*draft.problems, *imports])
        said = [SaidProblem(p.level, drafts.sentence(p.text), p.cell, p.line) for p in found]
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
        script = self.served.file(request.path) if request.kind == "script" else None
        checked = await asyncio.to_thread(import_problems.checked, draft, script, self._here)
        return checked.check()

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

    # ------------------------------------------------------------------ imports

    async def _import_problems(
        self, draft: Draft, script: Path | None, interpreter: str | None
    ) -> list[Problem]:
        """Return what is known of the imports by now; sending waits for all of it."""
        if interpreter is None:
            return []
        chosen = draft.selection.cells if draft.selection else ()
        code = [each.run for each in chosen if each.included] if script is None else [str(script)]
        task = _kept(
            self._imports,
            "\n\0".join([interpreter, str(draft.submission.working_dir), *code]),
            lambda: asyncio.to_thread(import_problems.problems, draft, script, self._here),
        )
        try:
            return await asyncio.wait_for(asyncio.shield(task), IMPORTS_S)
        except TimeoutError:
            return []

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
        return _kept(
            self._surveys,
            script,
            lambda: asyncio.to_thread(snapshot.survey, script.parent, must=[script.name]),
        )

    def _checkpoint(self, draft: Draft, script: Path | None) -> Checkpoint:
        if script is not None:
            with script.open("rb") as file:
                sources = [file.read(SCRIPT_BYTES).decode("utf-8", "replace")]
        else:
            chosen = draft.selection.cells if draft.selection else ()
            sources = [each.run for each in chosen if each.included]
        seen = checkpoint_detection.detect(sources)
        return Checkpoint(seen.found, seen.text)


def _kept(
    known: dict[K, tuple[float, asyncio.Task[T]]], key: K, ask: Callable[[], Coroutine[Any, Any, T]]
) -> asyncio.Task[T]:
    """Return what was asked under a key within the last seconds, else ask."""
    now = time.monotonic()
    for old in [each for each, (at, _) in known.items() if now - at >= KNOWN_S]:
        del known[old]
    if key not in known:
        known[key] = (now, asyncio.ensure_future(ask()))
    return known[key][1]


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
