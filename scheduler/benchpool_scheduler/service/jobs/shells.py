"""Shells inside running workers, for the owners of their jobs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import dataclass, field

from benchpool_scheduler.contract.shells import (
    Shell,
    ShellInput,
    ShellOpening,
    ShellOutput,
    ShellQuery,
)
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.errors import NotFound, Refused, TooMany
from benchpool_scheduler.phrases import visible
from benchpool_scheduler.runtime import Runtime, WorkerId
from benchpool_scheduler.runtime.shells import ShellChannel, ShellHosts
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.jobs.lookup import visible_job
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.service.observed.observed import SchedulerState
from benchpool_scheduler.store.records import JobRecord

log = logging.getLogger(__name__)

MOST_OF_USER, MOST = 4, 64
"""Maximum number of open shells per user, and in total."""
KEPT_BYTES = 256 * 1024
"""Size of the unread output, in bytes, above which the shell is blocked."""
SILENT_S, LOOK_S = 60.0, 5.0
"""Time without a read after which a shell ends, and interval between checks of this, in seconds."""
ENDS_S = 10.0
"""Maximum time a shell stays open after its job's end, in seconds."""


@dataclass(slots=True)
class _Open:
    """An open shell: its output from offset ``begin`` on, and how it ended."""

    worker: WorkerId
    user: str
    channel: ShellChannel
    last_read: float
    printed: bytearray = field(default_factory=bytearray)
    begin: int = 0
    typed: int = 0
    ended: bool = False
    exit_code: int | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    typing: asyncio.Lock = field(default_factory=asyncio.Lock)
    tasks: tuple[asyncio.Task[None], ...] = ()


class Shells:
    """Open shells, kept while their owners read them."""

    def __init__(self, ledger: Ledger, observed: SchedulerState, runtime: Runtime) -> None:
        self._ledger = ledger
        self._observed = observed
        self._runtime = runtime
        self._open: dict[str, _Open] = {}

    async def open(self, caller: Caller, job: str, opening: ShellOpening) -> Shell:
        """Open a shell in a running worker of the caller's own job.

        Errors: NotFound; Forbidden for other users who may see the job; TooMany; Refused if the job
        does not run, has no such worker, or the pool opens no shells.
        """
        record = visible_job(self._ledger, self._observed.now.configuration, caller, job)
        rights.require_owner_of_job(caller, record, "open a shell in it")
        runtime = self._runtime
        if not isinstance(runtime, ShellHosts):
            raise Refused(
                "This pool cannot open shells in its workers. `benchpool peek` shows what they do.",
                code="no-shell-here",
            )
        worker = self._worker(record, opening.worker)
        self._require_room(caller)
        try:
            channel = await runtime.shell(worker, opening.rows, opening.columns, opening.term)
        except OSError as failed:
            raise Refused(
                f"A shell could not be opened in worker {worker.worker} of job {record.id[:8]}: "
                f"{failed.strerror or failed}.",
                code="no-shell",
            ) from failed
        id_, shell = secrets.token_hex(16), _Open(worker, caller.name, channel, time.monotonic())
        self._open[id_] = shell
        shell.tasks = (
            asyncio.create_task(self._pump(shell)),
            asyncio.create_task(self._look_after(id_, shell)),
        )
        return Shell(id_, worker.job, worker.attempt, worker.worker)

    async def type(self, caller: Caller, job: str, typed: ShellInput) -> ShellOutput:
        """Send input to a shell; input with a known number is not sent again. Errors: NotFound."""
        shell = self._own(caller, job, typed.shell)
        async with shell.typing:
            if typed.number > shell.typed and not shell.ended:
                shell.typed = typed.number
                if typed.rows is not None and typed.columns is not None:
                    shell.channel.resize(typed.rows, typed.columns)
                if typed.hang_up:
                    await shell.channel.close()
                elif typed.data:
                    with contextlib.suppress(OSError):  # the output reports its end
                        await shell.channel.write(typed.data)
        return ShellOutput(b"", shell.begin + len(shell.printed), shell.ended, shell.exit_code)

    async def read(self, caller: Caller, job: str, query: ShellQuery, wait_s: float) -> ShellOutput:
        """Return the output of a shell from an offset on, and wait for it. Errors: NotFound."""
        shell = self._own(caller, job, query.shell)
        shell.last_read = time.monotonic()
        forget = min(max(query.offset - shell.begin, 0), len(shell.printed))
        del shell.printed[:forget]
        shell.begin += forget
        shell.taken.set()
        if not shell.printed and not shell.ended:
            shell.news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await shell.news.wait()
        shell.last_read = time.monotonic()
        data = bytes(shell.printed)
        text = self._why(shell) if shell.ended else ""
        return ShellOutput(data, shell.begin + len(data), shell.ended, shell.exit_code, text)

    async def close(self) -> None:
        """End all shells."""
        await asyncio.gather(*(self._end(id_) for id_ in list(self._open)))

    def _worker(self, record: JobRecord, index: int) -> WorkerId:
        attempt = self._ledger.attempt(record.id, record.attempt)
        named = f"Job {record.id[:8]} ({visible(record.name)})"
        if attempt is None or record.state is not JobState.RUNNING:
            raise Refused(
                f"{named} is {record.state}: a shell needs a running job.",
                code="not-running",
            )
        live = [it.index for it in attempt.live_workers]
        if index not in live:
            raise Refused(
                f"{named} has no running worker {index}; there are {', '.join(map(str, live))}.",
                code="no-such-worker",
                field="worker",
            )
        return WorkerId(record.id, attempt.attempt, index)

    def _require_room(self, caller: Caller) -> None:
        own = sum(not it.ended for it in self._open.values() if it.user == caller.name)
        every = sum(not it.ended for it in self._open.values())
        for number, most, whose in ((own, MOST_OF_USER, "you have"), (every, MOST, "there are")):
            if number >= most:
                raise TooMany(
                    f"At most {most} shells may be open, and {whose} {number}. Leave one.",
                    code="too-many-shells",
                    numbers={"open": number, "limit": most},
                )

    def _own(self, caller: Caller, job: str, id_: str) -> _Open:
        shell = self._open.get(id_)
        if (
            shell is None
            or caller.kind != "user"
            or shell.user != caller.name
            or not shell.worker.job.startswith(job)
        ):
            raise NotFound("You have no such shell: it has ended.", field="shell")
        return shell

    async def _pump(self, shell: _Open) -> None:
        while data := await shell.channel.read():
            shell.printed += data
            shell.news.set()
            while len(shell.printed) >= KEPT_BYTES:
                shell.taken.clear()
                await shell.taken.wait()
        shell.exit_code = await shell.channel.close()
        shell.ended = True
        shell.news.set()

    async def _look_after(self, id_: str, shell: _Open) -> None:
        """End a shell without readers, or whose job no longer runs."""
        over: float | None = None
        while True:
            await asyncio.sleep(LOOK_S)
            now = time.monotonic()
            if now - shell.last_read > SILENT_S:
                await self._end(id_)
                return
            over = None if self._runs(shell) else now if over is None else over
            if over is not None and now - over > ENDS_S and not shell.ended:
                await shell.channel.close()

    def _runs(self, shell: _Open) -> bool:
        job = self._ledger.job(shell.worker.job)
        if job is None or job.state not in HOLDS_GPUS:
            return False
        return job.attempt == shell.worker.attempt

    def _why(self, shell: _Open) -> str:
        if not self._runs(shell):
            return f"The shell has ended with attempt {shell.worker.attempt} of the job."
        if shell.exit_code is None:
            return "The shell was ended by a signal, as at the end of its attempt."
        return "The shell has ended."

    async def _end(self, id_: str) -> None:
        shell = self._open.pop(id_, None)
        if shell is None:
            return
        for task in shell.tasks:
            if task is not asyncio.current_task():
                task.cancel()
        await shell.channel.close()
