"""Outcome of a job for its caller: waiting, failure and values, with the interface of a future."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as TooLate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from benchpool.failures import JobFailed, failure
from benchpool.values.keeping import FOLDER, RESULT
from benchpool.values.reading import StoredValues
from benchpool_scheduler.client import Client, results
from benchpool_scheduler.contract import (
    ENDED,
    Job,
    JobMetrics,
    JobSubmission,
    NotebookEntry,
    State,
)
from benchpool_scheduler.contract.jobs import NOT_DELIVERED
from benchpool_scheduler.errors import BenchpoolError

if TYPE_CHECKING:
    from typing import Self

T = TypeVar("T")
LOG_TAIL = 1 << 16
"""Size of the end of a log in which the traceback is searched, in bytes."""


class JobOutcome:
    """Waiting for a job and reading its values, with the methods of ``concurrent.futures.Future``.

    ``await job`` and ``job.result()`` return the same.
    """

    facts: Job

    def __init__(self) -> None:
        self._watch: Watch | None = None
        self._watching = threading.Lock()
        self._values: StoredValues | None = None
        self._fetched: tempfile.TemporaryDirectory[str] | None = None

    def _client(self) -> Client:
        raise NotImplementedError

    # ------------------------------------------------------------------ waiting

    def done(self) -> bool:
        """Return whether the job has ended, as read from the pool."""
        return self._now() in ENDED

    def running(self) -> bool:
        """Return whether the job is running, as read from the pool."""
        return self._now() is State.RUNNING

    def cancelled(self) -> bool:
        """Return whether the job was cancelled, as read from the pool."""
        return self._now() is State.CANCELLED

    def result(self, timeout: float | None = None) -> Any:
        """Wait until the job has ended; return the result of its function, else its values by name.

        Args:
            timeout: Maximum time to wait, in seconds; None waits until the end.

        Raises:
            JobFailed: The job failed; the text contains the traceback.
            concurrent.futures.CancelledError: The job was cancelled.
            TimeoutError: The job did not end in time; it continues to run.
        """
        failed = self.exception(timeout)
        if failed is not None:
            raise failed
        values = self.values
        if not values.returns:
            return values
        return self[RESULT] if RESULT in {*values, *values.left_out} else None

    def exception(self, timeout: float | None = None) -> JobFailed | None:
        """Wait until the job has ended; return why it failed, or None.

        Raises the same errors as ``result``, except JobFailed.
        """
        self._wait(timeout)
        if self.facts.state is State.CANCELLED:
            raise CancelledError(f"job {self.facts.id[:8]} ({self.facts.name}) was cancelled")
        if self.facts.state is State.SUCCEEDED:
            return None
        reason = self.facts.reason.text if self.facts.reason else f"{self.facts.name} failed."
        log = self._client().log(self.facts.id, offset=-LOG_TAIL).data.decode("utf-8", "replace")
        message = f"job {self.facts.id[:8]}: {reason}"
        return failure(message, self.facts.id, log)

    def add_done_callback(self, function: Callable[[Self], object]) -> None:
        """Call a function with this job in another thread when the job has ended.

        If it has ended already, the function is called at once, perhaps in the calling thread.
        """
        watch = self._watched()

        def call() -> None:
            self.facts = watch.outcome()
            function(self)

        watch.then(call)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        self._watched().then(lambda: _wake(loop, ended))
        await ended.wait()
        value, failed = await asyncio.to_thread(self._result_or_failure)
        if failed is not None:
            raise failed
        return value

    def _result_or_failure(self) -> tuple[Any, Exception | None]:
        """Return what ``result`` returns, and the exception that it raises.

        If the exception were raised in a thread, a cancelled job would cancel the caller's own
        task.
        """
        try:
            return self.result(), None
        except (JobFailed, CancelledError, BenchpoolError) as failed:
            return None, failed

    def _now(self) -> State:
        if self.facts.state not in ENDED:
            self.facts = self._client().job(self.facts.id).job
        return self.facts.state

    def _wait(self, timeout: float | None) -> None:
        if self.facts.state in ENDED:
            return
        watch = self._watched()
        if not watch.over.wait(timeout):
            raise TooLate(
                f"job {self.facts.id[:8]} ({self.facts.name}) has not ended within {timeout:g} s; "
                "the job continues"
            )
        self.facts = watch.outcome()

    def _watched(self) -> Watch:
        with self._watching:
            if self._watch is None or self._watch.failed:
                self._watch = Watch(self._client(), self.facts)
            return self._watch

    # ------------------------------------------------------------------ values

    def __getitem__(self, name: str) -> Any:
        """Wait until the job has ended; return the value that its cells left in a name.

        A failed job has the values that its earlier cells left.

        Raises:
            KeyError: No value of that name was kept. The text gives the reason and the names kept.
        """
        self._wait(None)
        values = self.values
        if name in values:
            return values[name]
        why = values.left_out.get(name, f"{name} was not kept")
        there = ", ".join(each for each in values if each != RESULT) or "nothing"
        raise KeyError(f"job {self.facts.id[:8]}: {why}. It kept {there}.")

    @property
    def values(self) -> StoredValues:
        """Values that the job's cells have left so far, by name."""
        if self._values is None:
            found = StoredValues(self._results() / FOLDER, pickles=self.is_own, device="cpu")
            if self.facts.state not in ENDED:
                return found
            self._values = found
        return self._values

    @property
    def is_own(self) -> bool:
        """Whether the caller submitted the job, and may load what it pickled."""
        return self.facts.user == self._client().quota().user

    @property
    def metrics(self) -> Any:
        """Metrics reported so far: a DataFrame if pandas is installed, else a list of rows.

        There is one row for each step: ``step``, ``attempt``, ``after_s`` (seconds since the first
        report) and a value for each name, thinned to 1,000 points per name.
        """
        found = rows_of(self._client().job_metrics(self.facts.id))
        try:
            import pandas
        except ImportError:
            return found
        return pandas.DataFrame(found)

    @property
    def files(self) -> list[Path]:
        """Result files of the job that can be read here, sorted."""
        folder = self._results()
        return sorted(
            path
            for path in folder.rglob("*")
            if path.is_file() and FOLDER not in path.relative_to(folder).parts
        )

    @property
    def notebook(self) -> Path | None:
        """Executed copy of the cells or the notebook; None if there is none yet."""
        submission = self._client().submission(self.facts.id)
        if not isinstance(submission.entry, NotebookEntry):
            return None
        copy = self._results(submission) / submission.entry.name
        return copy if copy.is_file() else None

    def _results(self, submission: JobSubmission | None = None) -> Path:
        """Return the folder of the results: the submitter's, else a temporary copy."""
        if self._fetched is not None:
            return Path(self._fetched.name)
        into = tempfile.TemporaryDirectory(prefix="benchpool-results-")
        folder = self.results_in(Path(into.name), submission)
        if folder == Path(into.name):
            self._fetched = into
        else:
            into.cleanup()
        return folder

    def results_in(self, into: Path, submission: JobSubmission | None = None) -> Path:
        """Return the submitter's folder of results, or ``into`` with a copy if it is not here.

        While the job runs, a folder that is not here has no copy.
        """
        client = self._client()
        submission = submission or client.submission(self.facts.id)
        folder = Path(submission.output_dir or "")
        ended = self._now() in ENDED
        reason = self.facts.reason
        undelivered = reason is not None and reason.code == NOT_DELIVERED
        if not ended or (submission.output_dir and folder.is_dir() and not undelivered):
            return folder
        detail = client.job(self.facts.id)
        results.fetch(client, self.facts.id, into, detail.most_workers)
        return into


def rows_of(found: JobMetrics) -> list[dict[str, float | None]]:
    """Return metrics as one row for each step of an attempt.

    >>> from benchpool_scheduler.contract import Curve
    >>> loss = Curve("loss", [1, 2], [0.5, 0.25], [0.0, 1.0], [1, 1], None, None, None)
    >>> rows_of(JobMetrics("3fk2", "train", None, [loss]))[1]
    {'step': 2, 'attempt': 1, 'after_s': 1.0, 'loss': 0.25}
    """
    rows: dict[tuple[int, int], dict[str, float | None]] = {}
    for curve in found.curves:
        points = zip(curve.steps, curve.values, curve.after_s, curve.attempts, strict=True)
        for step, value, after_s, attempt in points:
            row: dict[str, float | None] = {"step": step, "attempt": attempt, "after_s": after_s}
            rows.setdefault((step, attempt), row)[curve.name] = value
    names = ["step", "attempt", "after_s", *(curve.name for curve in found.curves)]
    return [{name: rows[key].get(name) for name in names} for key in sorted(rows)]


def _wake(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    try:
        loop.call_soon_threadsafe(ended.set)
    except RuntimeError:
        logging.getLogger(__name__).debug("the event loop of a waiting task is closed")


class Watch:
    """Thread that waits for the end of a job and then calls the registered functions.

    Attributes:
        over: Set when there is an outcome.
        failed: The pool could not be reached any more.
    """

    def __init__(self, client: Client, facts: Job) -> None:
        self.over = threading.Event()
        self.failed = False
        self._facts = facts
        self._error: Exception | None = None
        self._functions: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        threading.Thread(target=self._run, args=(client,), daemon=True).start()

    def outcome(self) -> Job:
        """Return the job's facts at its end. Raises the errors of the pool's client."""
        if self._error is not None:
            raise self._error
        return self._facts

    def then(self, function: Callable[[], object]) -> None:
        """Call a function at the end of the job, or now if it has ended."""
        with self._lock:
            if not self.over.is_set():
                self._functions.append(function)
                return
        self._call(function)

    def _run(self, client: Client) -> None:
        try:
            if self._facts.state not in ENDED:
                self._facts = client.wait(self._facts.id)
        except Exception as failed:  # raised again in the waiting thread
            self._error, self.failed = failed, True
        with self._lock:
            self.over.set()
            functions, self._functions = self._functions, []
        for function in functions:
            self._call(function)

    def _call(self, function: Callable[[], object]) -> None:
        try:
            function()
        except Exception:
            logging.getLogger(__name__).exception("callback for the end of a job failed")
