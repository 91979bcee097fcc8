"""Process on one machine: SQLite, local processes, one service."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Literal, NoReturn

from tornado.httpserver import HTTPServer

from benchpool_scheduler.api import Api, HubIdentity
from benchpool_scheduler.app import (
    last_good,
    pool_services,
    rereading,
    serving,
    start_faults,
    starting,
)
from benchpool_scheduler.app.request_origin import RequestOrigins
from benchpool_scheduler.app.settings import SchedulerApp
from benchpool_scheduler.app.start_status import StartReport
from benchpool_scheduler.client.name_lookup import ProxyAddresses
from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.hub import HubDirectory
from benchpool_scheduler.runtime import SandboxLevel
from benchpool_scheduler.runtime.local import DeviceSource, LocalRuntime, find_devices, simulated
from benchpool_scheduler.runtime.local.parking.gpu_facts import NvmlFacts
from benchpool_scheduler.runtime.local.parking.parker import LocalParker
from benchpool_scheduler.service import CONFIGURATION, Pool, allowed_environment
from benchpool_scheduler.store.sqlite import SqliteStore
from benchpool_scheduler.telemetry import Sampling
from benchpool_scheduler.telemetry.nvml import NvmlSampler

log = logging.getLogger("benchpool_scheduler")

SIMULATED_GPUS = 8
REPORT_S = 10.0
"""Time for which a failed start answers with its reason before the process ends, in seconds."""


class EmbeddedServer:
    """All parts of one run of the process."""

    def __init__(self, settings: SchedulerApp) -> None:
        self._settings = settings
        self._state = Path(settings.state).absolute()
        self._stop = asyncio.Event()
        self._report = StartReport(self._state)
        self._identity = HubIdentity()
        hub_auth = self._identity.hub_auth
        self._directory = HubDirectory(hub_auth.api_url, hub_auth.api_token)
        self._pool: Pool | None = None
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve from the first moment, open the pool, and close everything in order."""
        self._listen_to_signals()
        proxies = ProxyAddresses(self._settings.proxies)
        origins = RequestOrigins(lambda: proxies.now)
        front = serving.Front(starting.application(self._settings.prefix, self._report), origins)
        server = serving.http_server(front)
        looking_up = asyncio.create_task(proxies.keep())
        await self._listen(server)
        try:
            pool = self._pool = await self._opened()
            api = Api(
                pool,
                self._identity,
                metrics_token=self._settings.metrics_token,
                start=self._settings.start_id,
            )
            gate = pool_services.gate_of(
                pool, self._identity, self._settings.prefix, self._settings.hidden_cookies
            )
            try:
                rules = serving.rules_of(
                    pool, api, self._identity, self._settings.prefix, gate.routes()
                )
                cookies = serving.cookie_secret(self._state / "scheduler" / "cookie-secret")
                front.application = serving.application(rules, cookies)
                self._report.ready()
                await self._stop.wait()
            finally:
                log.info("stopping; jobs keep running")
                server.stop()
                await api.end()
                await gate.end()
                await serving.within(serving.END_PATIENCE_S, server.close_all_connections())
                await pool.close()
        finally:
            looking_up.cancel()
            server.stop()
            await self._directory.close()
            await self._identity.close()

    async def _listen(self, server: HTTPServer) -> None:
        """Listen for requests. End the process if the port is taken."""
        host, port = self._settings.address
        try:
            server.listen(port, host)
        except OSError as failed:
            named = OSError(failed.errno, failed.strerror, f"port {port} on {host}")
            await self._end_start(start_faults.start_error(named, self._state).message, 1)
        log.info("serving %s on %s:%s", self._settings.prefix, host, port)

    async def _opened(self) -> Pool:
        """Open and return the pool. On failure, report the reason for ``REPORT_S``, then exit."""
        try:
            return await self._open_some()
        except Exception as error:
            expected = isinstance(error, BenchpoolError | OSError)
            await self._end_start(*self._why(error), traceback=not expected)

    async def _end_start(self, sentence: str, status: int, *, traceback: bool = False) -> NoReturn:
        """Report why the process cannot start for ``REPORT_S``, then exit."""
        self._report.failed(sentence, status)
        log.error("%s", sentence, exc_info=traceback)
        # The Hub polls for an answer and then exits with this error.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(REPORT_S):
                await self._stop.wait()
        sys.exit(status)

    def _why(self, error: Exception) -> tuple[str, int]:
        """Return why a start failed, as a sentence, and the exit status of the process."""
        if isinstance(error, OSError):
            error = start_faults.start_error(error, self._state)
        if isinstance(error, BenchpoolError):
            return error.message, error.exit_status
        return (
            f"The scheduler could not start ({type(error).__name__}: {error}); the next lines of "
            "the log show where.",
            1,
        )

    async def _open_some(self) -> Pool:
        """Open the pool with the configuration file, or with the last valid configuration."""
        file = Path(self._settings.configuration_file)
        begin = last_good.begin(self._state, file)
        pool = self._make_pool(begin.configuration)
        try:
            await pool.open()
        except InvalidInput as wrong:
            # The file is valid, but does not fit this machine: too many benches.
            if begin.problem is not None:
                raise
            begin = last_good.instead(self._state, file, wrong)
            pool = self._make_pool(begin.configuration)
            await pool.open()
        if begin.problem is not None:
            log.error("%s", begin.problem)
            pool.observed.report(CONFIGURATION, begin.problem)
        else:
            last_good.keep(self._state, file, begin.text)
        return pool

    async def _keep(self, text: str) -> None:
        """Store a text that comes into force, for a later start with an invalid file."""
        file = Path(self._settings.configuration_file)
        await asyncio.to_thread(last_good.keep, self._state, file, text)

    def _end(self, why: str) -> None:
        """End the process immediately. The next process continues from the stored state."""
        sentence = f"The scheduler exits and is restarted: {why}"
        self._report.failed(sentence)
        log.critical("%s", sentence)
        logging.shutdown()
        os._exit(1)

    def _make_pool(self, configuration: Configuration) -> Pool:
        settings = self._settings
        file = Path(settings.configuration_file)
        accounts: Literal["shared", "system"] = (
            "system" if settings.accounts == "system" else "shared"
        )
        sandbox: SandboxLevel = settings.sandbox
        return Pool(
            SqliteStore(self._state / "scheduler", lost=self._end, progress=self._report.count),
            LocalRuntime(self._state, _devices(settings), sandbox=sandbox),
            configuration,
            state=self._state,
            directory=self._directory,
            base_url=settings.public_url.rstrip("/"),
            accounts=accounts,
            environment={
                **allowed_environment(os.environ),
                **settings.worker_variables(os.environ),
            },
            configuration_file=file,
            notifications_file=Path(settings.notifications_file),
            keep_configuration=self._keep,
            ended=self._end,
            backups_kept=settings.backups,
            step=self._report.step,
            sampling=Sampling(NvmlSampler(), settings.sample_s),
            parker=None if settings.simulated_gpus else LocalParker(self._state, NvmlFacts()),
        )

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        self._reloading = asyncio.get_running_loop().create_task(self._read_again())

    async def _read_again(self) -> None:
        """Reload both files and log the result (SIGHUP)."""
        if self._pool is None:
            return  # the start reads the files
        await rereading.notifications(self._pool)
        try:
            change = await self._pool.configuration.reload()
        except BenchpoolError as refused:
            log.error("configuration unchanged: %s", refused.message)
            return
        for line in (*change.warnings, *change.changes):
            log.info("configuration: %s", line)
        log.info("configuration: in force, %d changes", len(change.changes))


def _devices(settings: SchedulerApp) -> DeviceSource:
    if settings.simulated_gpus:
        return simulated(settings.simulated_gpus, settings.gpu_model)
    return find_devices() or simulated(SIMULATED_GPUS, settings.gpu_model)
