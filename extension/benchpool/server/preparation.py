"""Preview of a submission for the dialog: what would be sent, and the pool's answer."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from benchpool import (
    checkpoint_detection,
    code_problems,
    draft_command,
    drafts,
    import_problems,
    notebooks,
)
from benchpool.cells import KnownBeside, NotebookCell, Problem, names_of
from benchpool.drafts import Draft
from benchpool.kernel.answer import KernelAnswer, NotAsked
from benchpool.kernel_environment import KernelEnvironment, kernel_environment
from benchpool.live_values import LiveValues
from benchpool.server import interpreters, kernel_values, repeated_runs
from benchpool.server.kernel_answers import KernelAnswers
from benchpool.server.offered_values import OfferedValues
from benchpool.server.offered_values import names_of as names_offered
from benchpool.server.pool_access import PoolAccess
from benchpool.server.repeated_runs import RepeatedPreview
from benchpool.server.requests import (
    Checkpoint,
    Files,
    KernelReport,
    LeftOutFile,
    OfferedParameter,
    OfferedValue,
    Preparation,
    PreparedCell,
    Refusal,
    ReportedProblem,
    SendRequest,
)
from benchpool.server.served_folder import ServedFolder
from benchpool.server.sweep_requests import described
from benchpool_scheduler.client import notebooks as notebook_files
from benchpool_scheduler.client import snapshot
from benchpool_scheduler.client.results import RESULTS
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

T = TypeVar("T")
K = TypeVar("K")

PREVIEW_S = 2.0
FILES_S = 1.0
IMPORTS_S = 1.5
"""Time that the dialog waits for the pool, the list of files, and the job's Python, in seconds."""

KNOWN_S = 5.0
"""Cache time of a list of files and of import checks, in seconds.

The dialog sends a request for each changed answer.
"""

LEFT_OUT_SHOWN = 200
SCRIPT_BYTES = 1 << 20


@dataclass(slots=True)
class Preparer:
    """Previews and drafts for one notebook server; ``usual_kernel`` for code without a kernel."""

    served: ServedFolder
    specs: Any
    pool: PoolAccess
    kernels: KernelAnswers
    usual_kernel: str
    offered: OfferedValues = field(init=False)
    _here: KernelEnvironment = field(default_factory=lambda: kernel_environment(os.environ))
    _surveys: dict[Path, tuple[float, asyncio.Task[snapshot.Survey]]] = field(default_factory=dict)
    _imports: dict[str, tuple[float, asyncio.Task[list[Problem]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.offered = OfferedValues(self.kernels)

    async def prepare(self, request: SendRequest) -> Preparation:
        """Return the preview for the dialog.

        Raises:
            InvalidInput: The path is not valid.
            NotFound: There is nothing to send at this path.
        """
        problems: list[ReportedProblem] = []
        interpreter = await self._interpreter(request, problems)
        answer = await self._kernel_answer(request)
        asking = asyncio.ensure_future(_outcome(self.pool.ask(lambda p: p.quota(), PREVIEW_S)))
        offers = await self.offered.of(request, answer, asking)
        values = LiveValues(names_offered(request, offers))
        seen = _seen(request, answer)
        request, draft, wrong = await self._tried(request, interpreter or "python3", seen, values)
        script = self.served.file(request.path) if request.kind == "script" else None
        files, imports, code, preview, quota, repeated = await asyncio.gather(
            self._files(request, script, problems),
            self._import_problems(draft, script, interpreter),
            asyncio.to_thread(code_problems.problems, draft, script, self._here),
            _outcome(self.pool.ask(lambda pool: pool.preview(_asked(draft, script)), PREVIEW_S)),
            asking,
            _outcome(
                repeated_runs.preview(self.pool, request, draft, _asked(draft, script), PREVIEW_S)
            ),
        )
        found = import_problems.in_order([*draft.problems, *imports, *code])
        reported = [
            ReportedProblem(p.level, drafts.sentence(p.text), p.cell, p.line) for p in found
        ]
        refusals = [one for one in (wrong, preview, repeated) if isinstance(one, BenchpoolError)]
        runs = RepeatedPreview() if isinstance(repeated, BenchpoolError) else repeated
        cells = draft.selection.cells if draft.selection else ()
        folder = Path(draft.submission.output_dir or "").parents[1]
        name = draft.submission.name or "job"
        return Preparation(
            name=name,
            cells=[PreparedCell.of(each) for each in cells],
            problems=[*problems, *reported],
            interpreter=interpreter,
            working_dir=self.served.relative(folder),
            output_dir=f"{RESULTS}/{drafts.plain(name)}-…",
            files=files,
            command=draft_command.command(draft, repeated_runs.words_of(request)),
            preview=None if isinstance(preview, BenchpoolError) else preview,
            refusal=_refusal(refusals[0]) if refusals else None,
            quota=None if isinstance(quota, BenchpoolError) else quota,
            checkpoint=self._checkpoint(draft, script),
            kernel=None if answer is None else KernelReport.of(answer),
            parameters=[
                OfferedParameter(p.name, p.type, p.default, p.help, p.cell, p.tagged)
                for p in draft.parameters
            ],
            left=list(draft.selection.left) if draft.selection else [],
            offers=[OfferedValue.of(one) for one in offers],
            sweep=runs.sweep,
            swept=described(request.sweep),
            schedule=runs.schedule,
        )

    async def _tried(
        self, request: SendRequest, interpreter: str, seen: KnownBeside, values: LiveValues
    ) -> tuple[SendRequest, Draft, InvalidInput | None]:
        """Return the interpreted request and its draft.

        If a parameter is invalid, the draft is without parameters, and the error is returned.
        """
        try:
            return *await self._interpreted(request, interpreter, seen, values), None
        except InvalidInput as wrong:
            if not (wrong.field or "").startswith(("parameters.", "sweep.")):
                raise
            plain = replace(request, parameters={})
            return request, await self._draft(plain, interpreter, seen, values), wrong

    async def _interpreted(
        self,
        request: SendRequest,
        interpreter: str,
        seen: KnownBeside,
        values: LiveValues,
        *,
        with_files: bool = False,
    ) -> tuple[SendRequest, Draft]:
        """Return the request with several values of a parameter as a sweep over it, and its draft.

        Errors: InvalidInput.
        """
        try:
            draft = await self._draft(request, interpreter, seen, values, with_files=with_files)
            return request, draft
        except InvalidInput as wrong:
            if not (wrong.field or "").startswith("parameters."):
                raise
        plain = await self._draft(replace(request, parameters={}), interpreter, seen, values)
        meant = repeated_runs.with_sweep_over(request, plain.parameters)
        return meant, await self._draft(meant, interpreter, seen, values, with_files=with_files)

    async def to_send(self, request: SendRequest, folder: Path) -> tuple[SendRequest, Draft]:
        """Return the interpreted request and the draft to send, with all files.

        Values are written into an empty folder.

        Raises the errors of ``prepare`` and of the analysis, and errors for values that cannot be
        sent.
        """
        interpreter = await self._python(request, [])
        answer = None if request.ticked is not None else await self._kernel_answer(request)
        seen = _seen(request, answer)
        values = LiveValues()
        if request.send:
            values = await kernel_values.written(
                self.kernels.manager,
                request.kernel_id,
                request.send,
                folder,
                pickle=request.pickle,
            )
        request, draft = await self._interpreted(
            request, interpreter, seen, values, with_files=True
        )
        script = self.served.file(request.path) if request.kind == "script" else None
        checked = await asyncio.to_thread(import_problems.checked, draft, script, self._here)
        return request, checked.check()

    async def _draft(
        self,
        request: SendRequest,
        interpreter: str,
        seen: KnownBeside,
        values: LiveValues,
        *,
        with_files: bool = False,
    ) -> Draft:
        options = dataclasses.replace(request.options(), values=values)
        if request.kind == "script":
            script = self.served.file(request.path)
            files = None
            if with_files:
                files = await asyncio.to_thread(snapshot.take, script.parent, must=[script.name])
            return drafts.of_script(
                script, request.args, options, kind="script", interpreter=interpreter,
                path=request.path, files=files, here=self._here,
            )  # fmt: skip
        cells, metadata = await self._cells(request)
        return await asyncio.to_thread(
            drafts.of_cells,
            cells,
            options,
            kind=request.kind,
            folder=self.served.folder_of(request.path).resolve(),
            interpreter=interpreter,
            path=request.path,
            whole=request.kind == "notebook",
            here=self._here,
            to_send=with_files,
            seen=seen,
            metadata=metadata,
        )

    async def _kernel_answer(self, request: SendRequest) -> KernelAnswer | NotAsked | None:
        """Return the answer of an open notebook's kernel; None for a file."""
        if request.cells is None or request.kind == "script":
            return None
        cells = request.notebook_cells()
        names = await asyncio.to_thread(names_of, cells)
        return await self.kernels.ask(request.kernel_id, names)

    async def _cells(
        self, request: SendRequest
    ) -> tuple[list[NotebookCell], notebook_files.Metadata]:
        """Return an open notebook's cells and metadata from the page, else from the saved file."""
        if request.cells is not None:
            return request.notebook_cells(), request.notebook_metadata()
        if request.kind == "cells":
            raise InvalidInput("No cells were sent. Select some in the notebook.", field="cells")
        file = self.served.file(request.path)
        return await asyncio.to_thread(notebooks.read_with_metadata, file)

    async def _interpreter(
        self, request: SendRequest, problems: list[ReportedProblem]
    ) -> str | None:
        try:
            return await self._python(request, problems)
        except InvalidInput as no_python:
            problems.append(ReportedProblem("error", no_python.message))
            return None

    async def _python(self, request: SendRequest, problems: list[ReportedProblem]) -> str:
        """Return the Python for the job, of the named kernel or the saved notebook's kernel."""
        name = request.kernel_name
        if name is None and request.kind == "notebook" and request.cells is None:
            saved = await asyncio.to_thread(notebook_files.read, self.served.file(request.path))
            name, missing = interpreters.chosen(self.specs, saved.kernel, self.usual_kernel)
            problems += [ReportedProblem("warning", drafts.sentence(missing))] if missing else []
        return interpreters.of_kernel(self.specs, name or self.usual_kernel)

    # ------------------------------------------------------------------ imports

    async def _import_problems(
        self, draft: Draft, script: Path | None, interpreter: str | None
    ) -> list[Problem]:
        """Return the import problems known within the timeout; a submission waits for all."""
        if interpreter is None:
            return []
        chosen = draft.selection.cells if draft.selection else ()
        code = [each.run for each in chosen if each.is_run] if script is None else [str(script)]
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

    async def _files(
        self, request: SendRequest, script: Path | None, problems: list[ReportedProblem]
    ) -> Files | None:
        """Return which files are sent; None if none are, or if the list is not ready."""
        if script is None and not self._here.files_travel:
            return None
        folder = script.parent if script else self.served.folder_of(request.path).resolve()
        try:
            listing = asyncio.shield(self._survey(folder, script))
            survey = await asyncio.wait_for(listing, FILES_S)
        except TimeoutError:
            text = f"the folder {folder.name} is large: its files are still being listed"
            problems.append(ReportedProblem("info", text))
            return None
        except BenchpoolError as refused:
            problems.append(ReportedProblem("error", refused.message))
            return None
        problems += [ReportedProblem("info", f"{each}.") for each in survey.sentences()]
        left = [LeftOutFile(each.path, each.why) for each in survey.left_out[:LEFT_OUT_SHOWN]]
        return Files(survey.count, survey.bytes, left)

    def _survey(self, folder: Path, script: Path | None) -> asyncio.Task[snapshot.Survey]:
        must = [] if script is None else [script.name]
        return _kept(
            self._surveys,
            script or folder,
            lambda: asyncio.to_thread(snapshot.survey, folder, must=must),
        )

    def _checkpoint(self, draft: Draft, script: Path | None) -> Checkpoint:
        if script is not None:
            with script.open("rb") as file:
                sources = [file.read(SCRIPT_BYTES).decode("utf-8", "replace")]
        else:
            chosen = draft.selection.cells if draft.selection else ()
            sources = [each.run for each in chosen if each.is_run]
        seen = checkpoint_detection.detect(sources)
        return Checkpoint(seen.found, seen.text, seen.lines)


def _seen(request: SendRequest, kernel: KernelAnswer | NotAsked | None) -> KnownBeside:
    ticked = None if request.ticked is None else frozenset(request.ticked)
    known = kernel if isinstance(kernel, KernelAnswer) else None
    return KnownBeside(known, frozenset(request.deleted_runs), ticked)


def _kept(
    known: dict[K, tuple[float, asyncio.Task[T]]], key: K, ask: Callable[[], Coroutine[Any, Any, T]]
) -> asyncio.Task[T]:
    """Return the cached task for a key, or start a new one."""
    now = time.monotonic()
    for old in [each for each, (at, _) in known.items() if now - at >= KNOWN_S]:
        del known[old]
    if key not in known:
        known[key] = (now, asyncio.ensure_future(ask()))
    return known[key][1]


def _asked(draft: Draft, script: Path | None) -> JobSubmission:
    """Return the submission to preview: a script runs in its folder, not copied yet."""
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
