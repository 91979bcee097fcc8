"""``benchpool up``: start all servers on this machine, print their addresses, watch and stop them.

Jobs and notebook servers continue to run when it ends; the next start finds them again.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import os
import secrets
import signal
import sys
import time
from pathlib import Path

from benchpool_scheduler import configuration
from benchpool_scheduler.app import last_good, start_faults
from benchpool_scheduler.client import AsyncClient, Credentials, elsewhere
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Unavailable
from benchpool_scheduler.phrases import count
from benchpool_scheduler.runtime.local import gpus
from benchpool_scheduler.worker.process_identity import identity
from benchpool_scheduler.workstation import (
    addresses,
    admin_token,
    files,
    hints,
    hub_facts,
    login_keys,
    ports,
    proxy,
    self_test,
    tls,
)
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.hub_api import AwaitedAddress, HubApi
from benchpool_scheduler.workstation.hub_keeper import HubKeeper
from benchpool_scheduler.workstation.hub_process import HubProcess
from benchpool_scheduler.workstation.options import LOOPBACK, UpOptions, account, check
from benchpool_scheduler.workstation.reloading import Reloading
from benchpool_scheduler.workstation.service_manager import ServiceManager
from benchpool_scheduler.workstation.startup_screen import (
    END_ALL,
    JsonScreen,
    StartupScreen,
    TextScreen,
)

SIMULATED_GPUS = 8
LOG_LOOK_S = 60.0
PORT_TRIES = 5
"""Maximum number of starts, each with newly chosen ports, when a port was taken meanwhile."""


class PortLost(Unavailable):
    """Another program took a port between its choice and its use."""


def run(options: UpOptions) -> int:
    """Start, serve until a signal to end, and return the exit status (formats, section 4)."""
    screen: StartupScreen = JsonScreen() if options.json else TextScreen()
    try:
        check(options)
        _check_python(options)
        folder = states.prepare(options.state, passable=options.auth == "pam")
        with states.alone(folder) as lock:
            return asyncio.run(Workstation(options, folder, screen, lock).run())
    except BenchpoolError as error:
        screen.error(error)
        return 2 if isinstance(error, InvalidInput) else 1
    except OSError as failed:
        screen.error(start_faults.start_error(failed, options.state.expanduser().absolute()))
        return 1


def _check_python(options: UpOptions) -> None:
    closed = states.closed_to_others(Path(sys.executable)) if options.auth == "pam" else None
    if closed is not None:
        raise InvalidInput(
            f"--auth pam starts servers as other accounts, which cannot enter {closed}, where "
            "this Python is: install benchpool into a folder that all users may read, such as "
            "/opt.",
            field="auth",
        )


class Workstation:
    """One run of ``benchpool up``."""

    def __init__(
        self, options: UpOptions, folder: states.StateFolder, screen: StartupScreen, lock: int
    ) -> None:
        self._options = options
        self._folder = folder
        self._screen = screen
        self._began = time.monotonic()
        self._hub = HubProcess(folder, lock)
        self._stop = asyncio.Event()
        self._manager = ServiceManager(os.environ)
        self._config_path = options.config.absolute() if options.config else folder.config
        self._certificate: tls.Certificate | None = None
        self._identity = secrets.token_hex(16)

    async def run(self) -> int:
        """Start all servers and run until the end."""
        self._listen()
        alive = asyncio.create_task(self._manager.stay_alive())
        try:
            settings = self._read_configuration()
            self._certificate = self._find_certificate()
            known = self._find_proxy()
            for _ in range(PORT_TRIES - 1):
                with contextlib.suppress(PortLost):
                    return await self._serve(settings, known)
                self._screen.note("Another program took a port in the meantime. Choosing another")
            return await self._serve(settings, known)
        finally:
            self._manager.ending()
            alive.cancel()
            self._folder.running.unlink(missing_ok=True)
            elsewhere.forget(self._folder.path)
            await self._hub.stop()

    async def _serve(self, settings: configuration.Configuration, known: proxy.Proxy) -> int:
        """Serve on newly chosen ports. Raises: PortLost."""
        with ports.held(self._folder, self._options.port, self._options.bind) as held:
            numbers = held.numbers
            self._write_facts(numbers, known)
            at = addresses.of(self._options, numbers)
            keeper = self._keeper(at, numbers)
            self._screen.note("Starting JupyterHub and the scheduler")
            await self._start(keeper, held)
            if self._stop.is_set():
                return 0
            token = await keeper.retried(lambda: self._admin_token(numbers))
            await self._report_ready(at, token, settings, keeper)
            return await self._watch(at, keeper, numbers)

    async def _start(self, keeper: HubKeeper, held: ports.HeldPorts) -> None:
        try:
            await keeper.start()
        except BenchpoolError as failed:
            await self._hub.stop()
            lost = held.lost()
            if not lost:
                raise
            taken = ", ".join(map(str, lost))
            raise PortLost(
                f"Another program took port {taken} while JupyterHub started. Start benchpool "
                "again on another port.",
                code="port-taken",
            ) from failed

    def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stop.set)

    # ------------------------------------------------------------------ before the Hub

    def _read_configuration(self) -> configuration.Configuration:
        """Read the configuration, created at the first start; use the last valid one if it is
        invalid.

        Raises:
            InvalidInput: It is invalid and no earlier one was in force; has file, line and key.
        """
        if self._options.config is None and not self._config_path.exists():
            text = configuration.default_configuration(account(), self._count_gpus())
            files.write_private(self._config_path, text.encode())
        begin = last_good.begin(self._folder.path, self._config_path)
        if begin.problem is not None:
            self._screen.note(begin.problem)
        return begin.configuration

    def _count_gpus(self) -> int:
        if self._options.gpus is not None:
            return self._options.gpus
        found = gpus.find_devices()
        return len(found.devices()) if found else SIMULATED_GPUS

    def _find_certificate(self) -> tls.Certificate | None:
        now = datetime.datetime.now(datetime.UTC)
        found = tls.find(self._options, self._folder.hub / "tls", now)
        ends = tls.warning(found, now) if found else None
        if ends:
            self._screen.note(ends)
        return found

    def _find_proxy(self) -> proxy.Proxy:
        found = proxy.find(os.environ)
        if found is None:
            self._screen.note("Installing the Hub's proxy with npm (only once)")
            found = proxy.install(os.environ)
        return found

    def _write_facts(self, numbers: ports.Ports, known: proxy.Proxy) -> None:
        facts = hub_facts.build(
            self._options,
            self._folder,
            self._config_path,
            numbers,
            known,
            self._certificate,
            self._identity,
        )
        files.write_json(self._folder.facts, facts)

    # ------------------------------------------------------------------ until all servers answer

    def _keeper(self, at: addresses.Addresses, numbers: ports.Ports) -> HubKeeper:
        # The Hub itself first: the proxy logs every request that it cannot forward.
        trusted = tls.trusting(self._certificate) if self._certificate else None
        addresses = (
            AwaitedAddress(f"{self._hub_url(numbers)}/", start=self._identity),
            AwaitedAddress(f"{at.proxy}hub/api/", trusted, at.host, self._identity),
            AwaitedAddress(f"{at.scheduler_api}/health", start=self._identity),
        )
        return HubKeeper(self._hub, self._folder.path, addresses, self._screen, self._stop)

    async def _admin_token(self, numbers: ports.Ports) -> str:
        words = hub_facts.secrets(self._folder)
        hub = HubApi(self._hub_url(numbers), words.hub_token)
        try:
            now = datetime.datetime.now(datetime.UTC)
            return await admin_token.current(hub, self._folder.admin_token, now)
        finally:
            await hub.close()

    def _hub_url(self, numbers: ports.Ports) -> str:
        return f"http://{LOOPBACK}:{numbers.hub}/hub/api"

    def _token(self) -> str:
        """Return the current administrator's token, which may have been rotated."""
        return self._folder.admin_token.read_text().strip()

    async def _report_ready(
        self,
        at: addresses.Addresses,
        token: str,
        settings: configuration.Configuration,
        keeper: HubKeeper,
    ) -> None:
        async with AsyncClient(Credentials(at.scheduler, token, source="up")) as client:
            status = await keeper.retried(client.status)
            test = await self_test.run(client, settings, account())
        key = login_keys.create(self._folder.login_keys, account())
        files.write_json(self._folder.running, self._running(at))
        elsewhere.remember(self._folder.path)
        ready = {
            "event": "ready",
            "url": at.url,
            "login_url": login_keys.link(at.url, key),
            "hub_api": at.hub_api,
            "scheduler_api": at.scheduler_api,
            "admin_token": token,
            "admin_token_file": str(self._folder.admin_token),
            "state": str(self._folder.path),
            "gpus": [
                {"uuid": gpu.uuid, "model": gpu.model, "simulated": gpu.simulated}
                for gpu in status.gpus
            ],
            "self_test": test,
            "seconds": round(time.monotonic() - self._began, 3),
        }
        shared = self._options.auth == "shared-password"
        extra = {"configuration-file": str(self._config_path), "administrator": account()}
        if shared:
            extra["shared-password-file"] = str(self._folder.shared_password)
            extra["admin-password-file"] = str(self._folder.admin_password)
        if self._certificate is not None and self._certificate.self_signed:
            extra["certificate-fingerprint"] = self._certificate.fingerprint
            extra["certificate-file"] = str(self._certificate.cert)
        self._screen.ready(ready, extra)
        self._manager.ready(f"JupyterHub and the pool answer at {at.url}")

    def _running(self, at: addresses.Addresses) -> states.RunningInstance:
        return states.RunningInstance(
            pid=os.getpid(),
            process=identity(os.getpid()) or "",
            url=at.url,
            hub_api=at.hub_api,
            scheduler_api=at.scheduler_api,
            token_file=self._folder.admin_token.name,
            auth=self._options.auth,
        )

    # ------------------------------------------------------------------ until the end

    async def _watch(self, at: addresses.Addresses, keeper: HubKeeper, numbers: ports.Ports) -> int:
        loop = asyncio.get_running_loop()
        reloading = Reloading(
            self._config_path, at.scheduler, self._folder.admin_token, self._screen
        )
        loop.add_signal_handler(signal.SIGHUP, reloading.ask)
        trimming = asyncio.create_task(self._trim_log())
        renewing = asyncio.create_task(admin_token.keep_good(self._hub_url(numbers), self._folder))
        try:
            await keeper.keep()
            await self._report_stop(at)
            return 0
        finally:
            trimming.cancel()
            renewing.cancel()

    async def _trim_log(self) -> None:
        while True:
            await asyncio.sleep(LOG_LOOK_S)
            with contextlib.suppress(OSError):
                await asyncio.to_thread(self._hub.trim_log)

    async def _report_stop(self, at: addresses.Addresses) -> None:
        """Report the jobs and servers that continue to run."""
        jobs, servers = 0, 0
        with contextlib.suppress(BenchpoolError, TimeoutError, OSError):
            token = self._token()
            async with asyncio.timeout(5), contextlib.AsyncExitStack() as stack:
                hub = HubApi(at.hub_api, token)
                stack.push_async_callback(hub.close)
                async with AsyncClient(Credentials(at.scheduler, token, source="up")) as client:
                    jobs = (await client.status()).running
                servers = len(await hub.servers())
        text = "Stopping the hub."
        if jobs or servers:
            text = (
                f"Stopping the hub. {count(jobs, 'job')} and {count(servers, 'notebook server')} "
                f"keep running: {hints.command('up', self._folder.path, os.environ)} manages them "
                f"again, {hints.command(END_ALL, self._folder.path, os.environ)} stops them."
            )
        self._screen.event("stopping", text, jobs=jobs, servers=servers)
