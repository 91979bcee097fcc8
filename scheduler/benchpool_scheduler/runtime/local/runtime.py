"""Workers as processes of this machine: the local implementation of the runtime port.

The state is read from the workers' folders rather than kept in memory. Each worker has a supervisor
that outlives the service, a lock that shows that it lives, and records of its progress. This module
does not decide when to start or stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from functools import partial
from pathlib import Path

from benchpool_scheduler.errors import Refused
from benchpool_scheduler.runtime import (
    Device,
    Launch,
    LogChunk,
    NodeFacts,
    Notice,
    Part,
    SandboxLevel,
    StartFault,
    UnexpectedWorker,
    WorkerEvent,
    WorkerId,
    WorkerStarted,
)
from benchpool_scheduler.runtime.worker_logs import WorkerLogs
from benchpool_scheduler.worker import records
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.log_files import BOUND
from benchpool_scheduler.worker.supervisor_process import is_locked, take_lock

from . import ends, leftovers, supervisors, trial, unexpected
from .gpus import DeviceSource
from .inside import LocalInside
from .observed_machine import ObservedMachine
from .running_worker import RunningWorker
from .sandbox import Sandbox
from .worker_reports import ReportLooks, WorkerReports

LOG_S, INTRODUCTION_S = 0.05, 10.0
"""Poll interval for logs, and timeout for introductions, in seconds."""


class LocalRuntime:
    """Runs workers on this machine; see the port for the contract of each method.

    Args:
        state: The state folder.
        devices: Source of the GPUs. ``sandbox``: isolation of workers from each other.
        log_bytes: Size limit of one worker's log on disk, in bytes.
        devices_s: Cache lifetime of the list of devices, in seconds.
        driver_s: Timeout for the driver, after which the last list is used, in seconds.
    """

    def __init__(
        self,
        state: Path,
        devices: DeviceSource,
        *,
        sandbox: SandboxLevel = "auto",
        log_bytes: int = BOUND,
        devices_s: float = 2.0,
        driver_s: float = 3.0,
    ) -> None:
        self._folders = Folders(state.absolute())
        self.results = self._folders.find_packed_results
        self._machine = ObservedMachine(devices, devices_s, driver_s)
        self.denied_devices, self.holders = self._machine.denied, self._machine.holders
        self._sandbox = Sandbox(sandbox, self.denied_devices, log_bytes)
        self._running: dict[WorkerId, RunningWorker] = {}
        inside = LocalInside(self._running, self._folders)
        self.stacks, self.leave, self.shell = inside.stacks, inside.leave, inside.shell
        self._unknown: dict[WorkerId, bool] = {}
        self._events: asyncio.Queue[WorkerEvent | BaseException | None] = asyncio.Queue()
        put = self._events.put_nowait
        self._reports = ReportLooks(self._running, self._folders, self._report_start, put)
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticker: asyncio.Task[None] | None = None
        self._logs = WorkerLogs(self._folders, self._log_ended, _pause)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self._folders.state

    # --------------------------------------------------------------------------- life

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers of an earlier service, including unexpected ones."""
        self._ticker = asyncio.create_task(self._reports.run())
        self._ticker.add_done_callback(self._ticker_ended)
        for worker in expected:
            await self._find(worker, expected=True)
        self._begin(leftovers.keep_swept())
        wanted = frozenset(expected)
        for worker in await asyncio.to_thread(list, self._folders.workers()):
            if worker not in wanted and is_locked(self._folders.worker(worker)):
                await self._find(worker, expected=False)

    async def close(self) -> None:
        """Release all resources; workers continue to run."""
        if self._ticker is not None:
            self._ticker.cancel()
        for task in self._tasks:
            task.cancel()
        for run in self._running.values():
            self._let_go(run)
        self._running.clear()
        self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield the events of all workers, in order, until ``close``; one consumer.

        Raises the error that ended the background task which checks them.
        """
        while (event := await self._events.get()) is not None:
            if isinstance(event, BaseException):
                raise event
            yield event

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now, or as last seen while the driver hangs."""
        return await self._machine.devices()

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return this machine."""
        return await self._machine.nodes()

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return None: there is only one node."""
        return None

    # --------------------------------------------------------------------------- unexpected workers

    def unexpected_workers(self) -> tuple[UnexpectedWorker, ...]:
        """Return the running workers that are not expected."""
        found = [run for run in self._running.values() if not run.expected]
        for run in found:
            run.description = run.description or unexpected.describe(run.worker, run.folder)
        return tuple(run.description for run in found if run.description is not None)

    async def adopt(self, worker: WorkerId) -> None:
        """Expect a worker from now on; its state is reported as an event."""
        run = self._running.get(worker)
        if worker in self._unknown:
            self._unknown[worker] = True
            return
        if run is None:
            await self._find(worker, expected=True)
            return
        run.expected = True
        self._report_start(run)

    async def end(self, worker: WorkerId, notice: Notice) -> None:
        """Stop an unexpected worker, and return when it has ended."""
        run = self._running.get(worker)
        if run is not None:
            with contextlib.suppress(OSError):
                await self.stop(worker, notice)
            await run.over.wait()

    # --------------------------------------------------------------------------- start

    async def start(self, launch: Launch) -> None:
        """Start a worker; the outcome is reported as an event. Repeating the call has no effect."""
        worker = launch.worker
        if worker in self._running or worker in self._unknown:
            return
        try:
            started = self._spawn(launch)
        except OSError as error:
            end = ends.could_not_start(error)
            ends.put_on_record(self._folders, worker, end)
            self._events.put_nowait(ends.event(worker, end))
            return
        if started is None:
            await self._find(worker, expected=True)
        else:
            self._watch(started)

    def _spawn(self, launch: Launch) -> RunningWorker | None:
        """Start a supervisor; return None if this worker was started before."""
        worker = launch.worker
        passable = launch.account is not None and os.geteuid() == 0
        folder = self._folders.make(worker, passable=passable)
        lock = take_lock(folder)
        if lock is None:
            return None
        try:
            if (folder / records.PROCESS).exists() or (folder / records.EXIT).exists():
                return None
            unexpected.note_origin(folder, launch.origin)
            config = supervisors.supervisor_config(launch, self._folders, self._sandbox)
            handle, ready = supervisors.start(folder, config, lock)
            return RunningWorker(worker, folder, handle, ready, expected=True)
        finally:
            os.close(lock)

    async def try_start(self, node: str) -> StartFault | None:
        """Start a test worker that ends at once; return the fault, or None if it started."""
        return await trial.try_start(self._folders)

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Send the notice and SIGTERM, and after the grace period SIGKILL to all its processes.

        Raises OSError if the notice was not written. The stop is then sent by signal, with the
        grace period of the worker's start. Repeat the call until the worker has ended.
        """
        run = self._running.get(worker)
        if worker in self._unknown:
            supervisors.request_stop(self._folders.worker(worker), notice)
        if run is None or run.let_go:
            return
        # A signal would kill a supervisor that is not ready; it reads the request by itself then.
        run.introduced |= (run.folder / records.PROCESS).exists()
        try:
            supervisors.request_stop(run.folder, notice)
        except OSError:
            if run.introduced:
                run.handle.stop(notice.kind)
            raise
        if run.introduced:
            run.handle.look()

    async def forget(self, job: str) -> None:
        """Delete all files of an ended job. Raises Refused if the job runs."""
        if any(worker.job == job for worker in (*self._running, *self._unknown)):
            raise Refused("the files of a running job cannot be deleted; cancel it first")
        await asyncio.to_thread(self._folders.remove, job)

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Delete one kind of files of ended jobs."""
        over = set(jobs) - {worker.job for worker in (*self._running, *self._unknown)}
        await asyncio.to_thread(self._folders.prune, over, part)

    # --------------------------------------------------------------------------- logs

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset``, or from the next stored byte."""
        return await self._logs.read(worker, offset, limit)

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the first offset written at ``since`` or later; None returns the current end."""
        return await self._logs.offset_at(worker, since)

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Wait until there are bytes after ``offset`` or the log ended; return False on timeout."""
        return await self._logs.wait(worker, offset, timeout_s)

    def _log_ended(self, worker: WorkerId) -> bool:
        living = worker in self._running or worker in self._unknown
        return not living and self._folders.worker(worker).exists()

    # --------------------------------------------------------------------------- watching

    async def _find(self, worker: WorkerId, *, expected: bool) -> None:
        """Connect to a worker by the state in its folder: it runs, it ended, or it is lost.

        A supervisor that has not introduced itself may begin at any moment, so it is waited for.
        After a timeout the wait continues in a background task.
        """
        folder = self._folders.worker(worker)
        try:
            handle = await supervisors.living(folder, INTRODUCTION_S)
        except TimeoutError:
            self._unknown[worker] = expected
            self._begin(self._find_late(worker))
        else:
            await self._connect(worker, handle, expected)

    async def _find_late(self, worker: WorkerId) -> None:
        handle = await supervisors.living(self._folders.worker(worker), math.inf)
        await self._connect(worker, handle, self._unknown.pop(worker))

    async def _connect(
        self, worker: WorkerId, handle: supervisors.SupervisorHandle | None, expected: bool
    ) -> None:
        folder = self._folders.worker(worker)
        if handle is not None:
            self._watch(RunningWorker(worker, folder, handle, None, expected, introduced=True))
            self._report_start(self._running[worker])
            return
        end = await ends.patiently(partial(records.read, str(folder), records.EXIT))
        if end is not None:
            if expected:
                await self._reports.finish(worker, WorkerReports(worker))
            self._events.put_nowait(ends.event(worker, end))
        else:
            await self._lose(worker, None, expected)

    def _watch(self, run: RunningWorker) -> None:
        self._running[run.worker] = run
        self._follow(run)

    def _follow(self, run: RunningWorker) -> None:
        """Watch for its start and end; try again later if the machine cannot arrange that now."""
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(run.handle.pidfd, self._supervisor_ended, run)
            if run.ready is not None:
                loop.add_reader(run.ready, self._command_started, run)
        except OSError:
            self._begin(self._follow_soon(run))

    async def _follow_soon(self, run: RunningWorker) -> None:
        await asyncio.sleep(ends.AGAIN_S[0])
        if not run.let_go:  # it may have ended meanwhile, and its descriptor been reused
            self._follow(run)

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _let_go(self, run: RunningWorker) -> int | None:
        if run.let_go:
            return None
        run.let_go = True
        self._close_ready(run)
        asyncio.get_running_loop().remove_reader(run.handle.pidfd)
        return run.handle.reap()

    def _close_ready(self, run: RunningWorker) -> None:
        if run.ready is not None:
            asyncio.get_running_loop().remove_reader(run.ready)
            os.close(run.ready)
            run.ready = None

    def _command_started(self, run: RunningWorker) -> None:
        self._close_ready(run)
        with contextlib.suppress(OSError):  # unreadable files are read again later
            self._report_start(run)

    def _report_start(self, run: RunningWorker) -> None:
        process = records.read(str(run.folder), records.PROCESS)
        at = None if process is None else process.get("started")
        if run.expected and not run.start_reported and isinstance(at, int | float):
            run.start_reported = run.introduced = True
            self._events.put_nowait(WorkerStarted(run.worker, float(at)))

    def _supervisor_ended(self, run: RunningWorker) -> None:
        self._begin(self._conclude(run, self._let_go(run)))

    async def _conclude(self, run: RunningWorker, status: int | None) -> None:
        """Report the end of a worker whose supervisor has ended."""
        await ends.patiently(partial(self._report_start, run))
        read = partial(records.read, str(run.folder), records.EXIT)
        if (end := await ends.patiently(read)) is None:
            await self._lose(run.worker, status, run.expected)
            return
        if run.expected and run.start_reported:
            await self._reports.finish(run.worker, run.reports)
        del self._running[run.worker]
        run.over.set()
        if run.expected:
            self._events.put_nowait(ends.event(run.worker, end))

    async def _lose(self, worker: WorkerId, status: int | None, expected: bool) -> None:
        """Kill the processes of a dead supervisor, then report the worker as lost."""
        look = partial(ends.lose, self._folders, worker, status)
        end = await ends.patiently(look, in_thread=True)
        run = self._running.get(worker)
        if end is not None and expected:
            reports = WorkerReports(worker) if run is None else run.reports
            await self._reports.finish(worker, reports)
        if run is not None:
            del self._running[worker]
            run.over.set()
        if end is not None:
            self._events.put_nowait(ends.event(worker, end))
        else:
            await asyncio.sleep(supervisors.LOOK_S)
            await self._find(worker, expected=expected)

    # --------------------------------------------------------------------------- progress

    def _ticker_ended(self, ticker: asyncio.Task[None]) -> None:
        failed = None if ticker.cancelled() else ticker.exception()
        if failed is not None:
            self._events.put_nowait(failed)


async def _pause(_: WorkerId, most_s: float) -> None:
    """Wait until the next look, since supervisors write logs without notification."""
    await asyncio.sleep(min(LOG_S, most_s))
