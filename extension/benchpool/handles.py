"""Jobs as objects of Python: send, list, follow, act. The words are those of the other ways."""

from __future__ import annotations

import os
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, overload

from benchpool import drafts, file_drafts, keywords, refusals
from benchpool.drafts import Draft
from benchpool.failures import JobFailed as JobFailed
from benchpool.job_outcome import JobOutcome
from benchpool.keep import Keep
from benchpool.submit_keywords import SubmitKeywords
from benchpool_scheduler.client import Client, LogText, discover, snapshot
from benchpool_scheduler.contract import ENDED, Attempt, Job, JobUsage, Quota, Status, Why
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.phrases import count, done, left, pause_words

if TYPE_CHECKING:
    from benchpool.arrays import ArrayHandle

PATIENCE_S = 20.0
"""For how long a scheduler that restarts is waited for."""

refusals.tell_in_one_line()

_lock = threading.Lock()
_client: Client | None = None


def _tell(sentence: str) -> None:
    """Say below the cell, or in the terminal, why nothing happens."""
    print(sentence, file=sys.stderr)


def client() -> Client:
    """Return this process's connection to the pool.

    Raises:
        Unavailable: No pool is known here. NotAuthenticated: No token for it.
    """
    global _client
    credentials = discover(os.environ)  # anew each time: a pool that was started again has moved
    with _lock:
        if _client is None or _client.credentials != credentials:
            _client = Client(credentials, patience_s=PATIENCE_S, tell=_tell)
        return _client


def disconnect() -> None:
    """Close this process's connection to the pool, if it has one; the next use makes another."""
    global _client
    with _lock:
        if _client is not None:
            _client.close()
        _client = None


class JobHandle(JobOutcome):
    """A job of the pool. In a notebook it shows itself live; elsewhere as a line of text.

    ``job.facts`` are its facts as last read: state, reason, progress, attempt and the rest.
    """

    def __init__(self, facts: Job) -> None:
        super().__init__()
        self.facts = facts

    def _client(self) -> Client:
        return client()

    @property
    def id(self) -> str:
        """Its 26 characters."""
        return self.facts.id

    @property
    def name(self) -> str:
        """Its name."""
        return self.facts.name

    @property
    def state(self) -> str:
        """Its state now, read from the pool (design: the eight words)."""
        return str(self.refresh().facts.state)

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it, as last read."""
        return self.facts.state in ENDED

    @property
    def why(self) -> Why:
        """Why it waits, and when it may start."""
        return client().why(self.id)

    @property
    def usage(self) -> JobUsage:
        """How it used its GPUs, and what to change next time; known within seconds of its end."""
        return client().usage(self.id)

    @property
    def attempts(self) -> list[Attempt]:
        """Its starts so far."""
        return client().job(self.id).attempts

    def refresh(self) -> JobHandle:
        """Read its facts again."""
        self.facts = client().job(self.id).job
        return self

    def wait(self) -> JobHandle:
        """Wait until it has ended; look at ``state`` and ``facts.exit_code`` for how."""
        if not self.ended:
            self.facts = client().wait(self.id)
        return self

    def logs(self, *, attempt: int | None = None, worker: int = 0) -> str:
        """Return the log so far, of the latest attempt unless another is named."""
        pieces: list[bytes] = []
        offset = 0
        while True:
            piece = client().log(self.id, attempt=attempt, worker=worker, offset=offset)
            if not piece.data:
                return b"".join(pieces).decode("utf-8", "replace")
            pieces.append(piece.data)
            offset = piece.next

    def follow(self, *, attempt: int | None = None, worker: int = 0) -> Iterator[str]:
        """Yield the log as it is written, until the attempt ends."""
        piece: LogText
        for piece in client().follow_log(self.id, attempt=attempt, worker=worker):
            yield piece.text

    def pause(self, reason: str | None = None) -> JobHandle:
        """Take it off its GPUs, keeping its progress, until it is resumed."""
        return self._acted(client().pause(self.id, reason))

    def resume(self, reason: str | None = None) -> JobHandle:
        """Queue it again after a pause."""
        return self._acted(client().resume(self.id, reason))

    def cancel(self, reason: str | None = None) -> JobHandle:
        """End it for good."""
        return self._acted(client().cancel(self.id, reason))

    def change(
        self,
        *,
        priority: int | None = None,
        workers: int | None = None,
        gpus: int | None = None,
        time_limit: int | None = None,
        project: str | None = None,
        gpu_models: Sequence[str] | None = None,
    ) -> JobHandle:
        """Give it another priority, size, time limit, project or GPU models; the rest stays."""
        changed = client().change(
            self.id,
            priority=priority,
            workers=workers,
            gpus=gpus,
            time_limit_s=time_limit,
            project=project,
            gpu_models=gpu_models,
        )
        return self._acted(changed)

    def rename(self, name: str) -> JobHandle:
        """Give it another name, at any time; everything else stays."""
        return self._acted(client().rename(self.id, name))

    def note(self, text: str = "") -> JobHandle:
        """Write a note on it, at any time; without a text the note is removed."""
        return self._acted(client().note(self.id, text))

    def _acted(self, facts: Job) -> JobHandle:
        self.facts = facts
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JobHandle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return line_of(self.facts)

    def _ipython_display_(self) -> None:
        from benchpool.display import show

        show(self)


def line_of(facts: Job) -> str:
    """Return a job as one line, e.g. ``3fk2hq7a train: queued, waits for 2 GPUs: 1 free``."""
    said = [str(facts.state)]
    if facts.progress is not None and facts.progress.fraction is not None:
        said.append(done(facts.progress.fraction, facts.progress.fell_from))
        ends = facts.progress.ends
        rest = left(None if ends is None else (ends - datetime.now(UTC)).total_seconds())
        said += [rest] if rest else []
    if pause := pause_words(facts.pause, datetime.now(UTC)):
        said.append(pause)
    if facts.reason is not None:
        said.append(facts.reason.text)
    gpus = facts.gpus * facts.workers
    return f"{facts.id[:8]} {facts.name}: {', '.join(said)} ({count(gpus, 'GPU')})"


@overload
def submit(
    what: str | os.PathLike[str],
    /,
    *args: object,
    key: str | None = None,
    keep: Sequence[str] | None = None,
    pickle: bool = False,
    array: None = None,
    **options: Unpack[SubmitKeywords],
) -> JobHandle: ...


@overload
def submit(
    what: str | os.PathLike[str],
    /,
    *args: object,
    key: str | None = None,
    keep: Sequence[str] | None = None,
    pickle: bool = False,
    array: str,
    **options: Unpack[SubmitKeywords],
) -> ArrayHandle: ...


@overload
def submit(
    what: Callable[..., object],
    /,
    *args: object,
    key: str | None = None,
    pickle: bool = False,
    **options: Any,
) -> JobHandle: ...


def submit(
    what: str | os.PathLike[str] | Callable[..., object],
    /,
    *args: object,
    key: str | None = None,
    keep: Any = None,
    pickle: bool = False,
    array: Any = None,
    **options: Any,
) -> JobHandle | ArrayHandle:
    """Send a script, a notebook or a function to the pool and return its job.

    A script runs in a copy of the current folder, or of its own when it lies elsewhere; a notebook
    in its own folder; a function in the current one, with the code of this session that it needs.
    All run with the Python that runs this.

    Args:
        what: A ``.py`` or ``.ipynb`` file, or a function.
        args: Arguments of a script or function. Keywords that are no options are a function's, or
            parameters of a notebook.
        key: Makes a repeat with the same key harmless.
        keep: Names of a notebook whose values come back, for ``job["model"]``; without it those
            that the cells define last, up to 256 MiB. What a function returns always does.
        pickle: What of it has no safe format is pickled; reading it then runs what the job wrote.
        array: Of a script or notebook: run it once for each of these task numbers, ``"0-31%4"`` for
            at most 4 at a time; ``array[7]`` of what is returned is the job of task 7.

    Raises:
        InvalidInput: There is no such file, or something in it is known to fail.
        Refused: A rule of the pool says no, with the numbers.
    """
    if callable(what):
        from benchpool.functions import sending

        asked = {name: each for name, each in options.items() if name in keywords.NAMES}
        given = {name: each for name, each in options.items() if name not in keywords.NAMES}
        own = {"keep": keep, "array": array}
        given |= {name: each for name, each in own.items() if each is not None}
        return sending.submit(what, args, given, asked | {"pickle": pickle}, key=key)
    wanted = Keep.asked(keep, pickle)
    if array is not None:
        from benchpool import arrays

        return arrays.submit(Path(what), args, options, str(array), key=key, keep=wanted)
    return send(file_drafts.draft_of(Path(what), args, options, key or uuid.uuid4().hex, wanted))


keywords.describe(submit)


def jobs(
    *,
    all: bool = False,
    project: str | None = None,
    state: str | None = None,
    limit: int = 100,
    **more: Any,
) -> list[JobHandle]:
    """Return jobs, newest first: one's own, or with ``all`` every one that one may see.

    What else ``benchpool jobs`` can be asked for is taken by the name of its option.
    """
    found = client().jobs(all_=all, project=project, state=state, limit=limit, **more)
    return [JobHandle(each) for each in found]


def job(id_: str) -> JobHandle:
    """Return the job with this id, or with an id that begins so (at least 4 characters)."""
    if len(id_) >= 26:
        return JobHandle(client().job(id_).job)
    found = [each for each in client().jobs(all_=True) if len(id_) >= 4 and each.id.startswith(id_)]
    if len(found) != 1:
        what = "no job" if not found else f"{len(found)} jobs"
        raise NotFound(
            f"{what} that you may see begins with {id_!r}: give at least 4 characters, or all.",
            field="id",
        )
    return JobHandle(found[0])


def quota(user: str | None = None) -> Quota:
    """Return the build quota and the projects of a user; one's own by default."""
    return client().quota(user)


def status() -> Status:
    """Return the pool in one object; ``print(benchpool.status().text)`` is its sentence."""
    return client().status()


def send(draft: Draft) -> JobHandle:
    """Say what may fail in a draft, upload what the pool lacks of it, and submit it."""
    say_problems(draft)
    if draft.values.bytes or draft.submission.deadline is not None:
        preview = client().preview(draft.submission)
        if preview.deadline is not None:
            _tell(preview.deadline.text)
    snapshot.upload(client(), draft.contents)
    return JobHandle(client().submit(draft.submission))


def say_problems(draft: Draft) -> None:
    """Say what may fail in a draft. Errors: InvalidInput for what is known to fail."""
    for problem in draft.check().problems:
        _tell(f"{draft.place(problem)}{drafts.sentence(problem.text)}")
