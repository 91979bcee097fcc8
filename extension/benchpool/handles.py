"""Jobs as Python objects: submit, list, follow and control. The names are those of the CLI."""

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
from benchpool.functions.session_calls import takes
from benchpool.job_outcome import JobOutcome
from benchpool.keep import Keep
from benchpool.submit_keywords import SubmitKeywords
from benchpool_scheduler.client import Client, LogText, discover, schedule_requests, snapshot
from benchpool_scheduler.contract import ENDED, Attempt, Job, JobUsage, Quota, Status, Why
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.phrases import count, done, left, pause_words

if TYPE_CHECKING:
    from benchpool.arrays import ArrayHandle
    from benchpool.schedule_handles import ScheduleHandle

PATIENCE_S = 20.0
"""Time to wait for a scheduler that restarts, in seconds."""

refusals.print_in_one_line()

_lock = threading.Lock()
_client: Client | None = None


def _report(sentence: str) -> None:
    """Print a message below the cell, or in the terminal."""
    print(sentence, file=sys.stderr)


def client() -> Client:
    """Return this process's connection to the pool.

    Raises:
        Unavailable: No pool is known here.
        NotAuthenticated: There is no token for the pool.
    """
    global _client
    credentials = discover(os.environ)  # read each time: a restarted pool has moved
    with _lock:
        if _client is None or _client.credentials != credentials:
            _client = Client(credentials, patience_s=PATIENCE_S, on_wait=_report)
        return _client


def disconnect() -> None:
    """Close this process's connection to the pool, if any. The next use opens a new one."""
    global _client
    with _lock:
        if _client is not None:
            _client.close()
        _client = None


class JobHandle(JobOutcome):
    """Job of the pool. A notebook shows it live, other places as a line of text.

    ``job.facts`` holds its state, reason, progress, attempt and other facts, as last read.
    """

    def __init__(self, facts: Job) -> None:
        super().__init__()
        self.facts = facts

    def _client(self) -> Client:
        return client()

    @property
    def id(self) -> str:
        """Job ID, 26 characters."""
        return self.facts.id

    @property
    def name(self) -> str:
        """Name of the job."""
        return self.facts.name

    @property
    def state(self) -> str:
        """Present state, read from the pool, such as ``queued``, ``running`` or ``succeeded``."""
        return str(self.refresh().facts.state)

    @property
    def ended(self) -> bool:
        """Whether the job has ended, as last read."""
        return self.facts.state in ENDED

    @property
    def why(self) -> Why:
        """Reason why the job waits, and an estimate of its start."""
        return client().why(self.id)

    @property
    def usage(self) -> JobUsage:
        """GPU use of the job, with advice for the next one; available within seconds of its end."""
        return client().usage(self.id)

    @property
    def attempts(self) -> list[Attempt]:
        """Starts of the job so far."""
        return client().job(self.id).attempts

    def refresh(self) -> JobHandle:
        """Read the facts of the job again and return the job."""
        self.facts = client().job(self.id).job
        return self

    def wait(self) -> JobHandle:
        """Wait until the job has ended and return it. See ``state`` and ``facts.exit_code``."""
        if not self.ended:
            self.facts = client().wait(self.id)
        return self

    def logs(self, *, attempt: int | None = None, worker: int = 0) -> str:
        """Return the log so far, by default that of the latest attempt."""
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
        """Pause the job: it leaves its GPUs and keeps its progress until it is resumed."""
        return self._acted(client().pause(self.id, reason))

    def resume(self, reason: str | None = None) -> JobHandle:
        """Queue it again after a pause."""
        return self._acted(client().resume(self.id, reason))

    def cancel(self, reason: str | None = None) -> JobHandle:
        """Cancel the job permanently."""
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
        """Change the job's priority, size, time limit, project or GPU models; the rest stays."""
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
        """Rename the job; possible at any time. The rest stays."""
        return self._acted(client().rename(self.id, name))

    def note(self, text: str = "") -> JobHandle:
        """Set the job's note; possible at any time. An empty text removes the note."""
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
    parts = [str(facts.state)]
    if facts.progress is not None and facts.progress.fraction is not None:
        parts.append(done(facts.progress.fraction, facts.progress.previous_progress))
        ends = facts.progress.ends
        rest = left(None if ends is None else (ends - datetime.now(UTC)).total_seconds())
        parts += [rest] if rest else []
    if pause := pause_words(facts.pause, datetime.now(UTC)):
        parts.append(pause)
    if facts.reason is not None:
        parts.append(facts.reason.text)
    gpus = facts.gpus * facts.workers
    return f"{facts.id[:8]} {facts.name}: {', '.join(parts)} ({count(gpus, 'GPU')})"


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
    what: str | os.PathLike[str] | Callable[..., object],
    /,
    *args: object,
    every: str,
    zone: str | None = None,
    key: str | None = None,
    keep: Sequence[str] | None = None,
    pickle: bool = False,
    **options: Any,
) -> ScheduleHandle: ...


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
    every: Any = None,
    zone: Any = None,
    **options: Any,
) -> JobHandle | ArrayHandle | ScheduleHandle:
    """Submit a script, a notebook or a function to the pool and return its job.

    A script runs in a copy of the current folder, or of its own folder if it is elsewhere. A
    notebook runs in its own folder. A function runs in the current folder, with the code of this
    session that it needs. All use the Python that runs this call.

    Args:
        what: A ``.py`` or ``.ipynb`` file, or a function.
        args: Arguments of a script or function. Keywords other than the options below are
            arguments of a function, or parameters of a notebook.
        key: Makes a retry with the same key harmless.
        keep: Names of a notebook whose values are returned, for ``job["model"]``. By default those
            that the cells define last, up to 256 MiB. The result of a function is always returned.
        pickle: Pickle returned values that have no safe format. Reading them runs code of the job.
        array: For a script or notebook: run it once for each of these task numbers. ``"0-31%4"``
            runs at most 4 at a time. ``array[7]`` of the result is the job of task 7.
        every: Send it repeatedly and return the schedule, for example ``"night at 2"`` or five
            fields of cron. A function with a parameter ``every`` or ``zone`` gets it as argument.
        zone: With ``every``: time zone, such as ``"Europe/Berlin"``. Default: that of this machine.

    Raises:
        InvalidInput: The file does not exist, or a part of it is known to fail.
        Refused: A rule of the pool rejects the job. The message has the numbers.
    """
    from benchpool import schedule_handles

    if callable(what):
        from benchpool.functions import sending

        asked = {name: each for name, each in options.items() if name in keywords.NAMES}
        given = {name: each for name, each in options.items() if name not in keywords.NAMES}
        own = {"keep": keep, "array": array}
        if takes(what, "every"):
            own["every"], every = every, None
        if takes(what, "zone"):
            own["zone"], zone = zone, None
        schedule_requests.check_alone(every, zone, [], flag="")
        given |= {name: each for name, each in own.items() if each is not None}
        draft = sending.drafted_call(what, args, given, asked | {"pickle": pickle}, key=key)
        return schedule_handles.send_or_repeat(draft, every, zone)
    wanted = Keep.asked(keep, pickle)
    if array is not None:
        from benchpool import arrays

        schedule_requests.check_alone(every, zone, ["array"], flag="")
        return arrays.submit(Path(what), args, options, str(array), key=key, keep=wanted)
    draft = file_drafts.draft_of(Path(what), args, options, key or uuid.uuid4().hex, wanted)
    return schedule_handles.send_or_repeat(draft, every, zone)


keywords.describe(submit)


def jobs(
    *,
    all: bool = False,
    project: str | None = None,
    state: str | None = None,
    limit: int = 100,
    **more: Any,
) -> list[JobHandle]:
    """Return your jobs, newest first, or with ``all`` every job that you may see.

    Further keyword arguments are the other options of ``benchpool jobs``.
    """
    found = client().jobs(all_=all, project=project, state=state, limit=limit, **more)
    return [JobHandle(each) for each in found]


def job(id_: str) -> JobHandle:
    """Return the job with this ID, or with an ID that starts with it (at least 4 characters).

    Raises:
        NotFound: No visible job matches, or several do.
    """
    if len(id_) >= 26:
        return JobHandle(client().job(id_).job)
    found = [each for each in client().jobs(all_=True) if len(id_) >= 4 and each.id.startswith(id_)]
    if len(found) != 1:
        what = "No visible job" if not found else f"{len(found)} visible jobs"
        raise NotFound(
            f"{what} found for ID {id_!r}. Give at least 4 characters, or the full ID.",
            field="id",
        )
    return JobHandle(found[0])


def quota(user: str | None = None) -> Quota:
    """Return the build quota and the projects of a user, by default your own."""
    return client().quota(user)


def status() -> Status:
    """Return the state of the pool. ``print(benchpool.status().text)`` prints a summary."""
    return client().status()


def send(draft: Draft) -> JobHandle:
    """Report problems of a draft, upload the contents that the pool lacks, and submit it."""
    report_problems(draft)
    if draft.values.bytes or draft.submission.deadline is not None:
        preview = client().preview(draft.submission)
        if preview.deadline is not None:
            _report(preview.deadline.text)
    snapshot.upload(client(), draft.contents)
    return JobHandle(client().submit(draft.submission))


def report_problems(draft: Draft) -> None:
    """Report possible problems of a draft.

    Raises:
        InvalidInput: A part of the draft is known to fail.
    """
    for problem in draft.check().problems:
        _report(f"{draft.place(problem)}{drafts.sentence(problem.text)}")
