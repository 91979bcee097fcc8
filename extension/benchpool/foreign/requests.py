"""Requests of kernels without benchpool, handled in the notebook server's Python."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec
from msgspec import Struct

from benchpool import file_drafts, handles, keywords, magic, schedule_handles, serve_magic
from benchpool.functions import sending
from benchpool.functions.call_text import FunctionCall
from benchpool.functions.pieces import Senders
from benchpool.functions.session import CodeSession, RanCell
from benchpool.handles import JobHandle
from benchpool.keep import Keep
from benchpool.kernel import question
from benchpool.kernel.answer import KernelAnswer, decode
from benchpool.live_values import MOST_BYTES
from benchpool.magic_words import HelpAsked

Ask = Callable[[Mapping[str, Any]], Any]
"""Asks the kernel a question and returns its answer."""

Result = dict[str, Any] | list[str] | str


class _Request(Struct, frozen=True, forbid_unknown_fields=True, tag_field="do"):
    def handle(self, ask: Ask) -> Result:
        raise NotImplementedError


class _Magic(_Request, frozen=True):
    line: str
    cell: str
    inputs: list[str]
    failed: list[int]
    interpreter: str

    send: ClassVar[Callable[..., object]]

    def handle(self, ask: Ask) -> Result:
        try:
            return _sent(type(self).send(_KernelOfMagic(self, ask), self.line, self.cell))
        except HelpAsked as asked:
            return {"help": str(asked)}


class TrainMagic(_Magic, frozen=True, tag="train"):
    """``%%train``."""

    send = staticmethod(magic.send)


class ServeMagic(_Magic, frozen=True, tag="serve"):
    """``%%serve``."""

    send = staticmethod(serve_magic.start)


class _KernelOfMagic:
    """Session of a magic in the kernel, reached by questions."""

    def __init__(self, request: _Magic, ask: Ask) -> None:
        self._request, self._ask = request, ask

    @property
    def interpreter(self) -> str:
        return self._request.interpreter

    def inputs(self) -> Sequence[str]:
        return self._request.inputs

    def failed(self) -> frozenset[int]:
        return frozenset(self._request.failed)

    def answer(self, history: list[str], names: Iterable[str]) -> KernelAnswer:
        asked = {"names": sorted(set(names))[: question.MAX_NAMES], "history": history}
        return decode(self._ask({"ask": "names", **asked}))

    def write(self, names: Sequence[str], folder: str, pickle: bool) -> str:
        asked = {"names": list(names), "folder": folder, "pickle": pickle, "most": MOST_BYTES}
        return str(self._ask({"ask": "values", **asked}))


class _SentCall(Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    imports: list[str]
    name: str
    given: dict[str, Any]


class _Calls(_Request, frozen=True):
    cells: list[dict[str, Any]]
    folder: str
    path: str | None
    module_folder: str | None
    senders: dict[str, list[str]]
    calls: list[_SentCall]
    interpreter: str
    options: dict[str, Any]

    def session(self) -> CodeSession:
        return CodeSession(
            tuple(RanCell(**each) for each in self.cells),
            {},
            Path(self.folder),
            self.path,
            self.module_folder,
            self.interpreter,
        )

    def written(self) -> list[FunctionCall]:
        return [FunctionCall(it.text, tuple(it.imports), it.name, it.given) for it in self.calls]


class OneCall(_Calls, frozen=True, tag="call"):
    """``benchpool.submit`` of a function."""

    every: str | None = None
    zone: str | None = None

    def handle(self, ask: Ask) -> Result:
        asked = sending.options_of(*_with_key(self.options))
        senders, (call,) = Senders.of(self.senders), self.written()
        draft = sending.draft_of_call(self.session(), senders, call, asked)
        return _sent(schedule_handles.send_or_repeat(draft, self.every, self.zone))


class ManyCalls(_Calls, frozen=True, tag="calls"):
    """``benchpool.map``."""

    def handle(self, ask: Ask) -> Result:
        asked = sending.options_of(*_with_key(self.options))
        senders, written = Senders.of(self.senders), self.written()
        sent = sending.send_calls(self.session(), senders, written, asked)
        return {"jobs": [_facts(each) for each in sent]}


class FileRequest(_Request, frozen=True, tag="file"):
    """``benchpool.submit`` of a script or a notebook."""

    what: str
    args: list[str]
    interpreter: str
    options: dict[str, Any]
    every: str | None = None
    zone: str | None = None

    def handle(self, ask: Ask) -> Result:
        options, key = _with_key(self.options)
        keep = Keep.asked(options.pop("keep", None), bool(options.pop("pickle", False)))
        draft = file_drafts.draft_of(
            Path(self.what), tuple(self.args), options, key, keep, self.interpreter
        )
        return _sent(schedule_handles.send_or_repeat(draft, self.every, self.zone))


class OptionNames(_Request, frozen=True, tag="options"):
    """Names of the keyword arguments of ``benchpool.submit`` that are options of the job."""

    def handle(self, ask: Ask) -> Result:
        return sorted(keywords.NAMES | {"key", "pickle"})


class JobRequest(_Request, frozen=True, tag="job"):
    """Request for one job, by its ID or the beginning of it."""

    id: str
    verb: Literal["facts", "wait", "logs", "pause", "resume", "cancel", "results"]
    timeout: float | None = None
    folder: str | None = None

    def handle(self, ask: Ask) -> Result:
        job = handles.job(self.id)
        if self.verb == "logs":
            return job.logs()
        if self.verb == "results":
            return _results(job, Path(self.folder or ""))
        if self.verb == "wait":
            with suppress(TimeoutError, CancelledError):
                job.exception(self.timeout)
        elif self.verb != "facts":
            getattr(job, self.verb)()
        return _facts(job)


Request = TrainMagic | ServeMagic | OneCall | ManyCalls | FileRequest | OptionNames | JobRequest
"""All requests of a kernel."""


def handle(line: str | bytes, ask: Ask) -> Result:
    """Return the result of a request, given as a line of JSON.

    Raises:
        BenchpoolError: It was rejected.
        msgspec.ValidationError: It is not a request.
    """
    request: _Request = msgspec.json.decode(line, type=Request)
    return request.handle(ask)


def _with_key(options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the options without the key, and the key, which a retry repeats."""
    return {name: each for name, each in options.items() if name != "key"}, str(
        options.get("key") or uuid.uuid4().hex
    )


def _sent(sent: object) -> Result:
    """Return the answer for something that was sent."""
    return {"job": _facts(sent)} if isinstance(sent, JobHandle) else {"text": repr(sent)}


def _facts(job: JobHandle) -> dict[str, Any]:
    facts = job.facts
    reason = facts.reason.text if facts.reason else f"{facts.name} failed."
    return {
        "id": facts.id,
        "name": facts.name,
        "state": str(facts.state),
        "ended": job.ended,
        "reason": reason,
        "line": handles.line_of(facts),
    }


def _results(job: JobHandle, into: Path) -> dict[str, Any]:
    """Return the folder of a job's results, and whether the job is the caller's own."""
    return {"folder": str(job.results_in(into)), "own": job.is_own}
