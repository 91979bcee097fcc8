"""The scheduler's process: ``python -m benchpool_scheduler.app``, started by the Hub.

The only place that names concrete store, runtime and identity, and that reads the service's
environment. SIGTERM and SIGINT end it in good order (jobs run on); SIGHUP reads ``benchpool.yaml``
again, all or nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import traitlets
from tornado.httpserver import HTTPServer
from tornado.web import Application as WebApplication
from tornado.web import RequestHandler
from traitlets.config import Application

from benchpool_scheduler import configuration, web
from benchpool_scheduler.api import Api, HubIdentity
from benchpool_scheduler.api.routing import MIB
from benchpool_scheduler.errors import BenchpoolError, InvalidInput
from benchpool_scheduler.hub import HubDirectory
from benchpool_scheduler.runtime.local import DeviceSource, LocalRuntime, find_devices, simulated
from benchpool_scheduler.service import Pool, allowed_environment
from benchpool_scheduler.store.sqlite import SqliteStore

log = logging.getLogger("benchpool_scheduler")

SIMULATED_GPUS = 8
END_PATIENCE_S = 5.0


def _from(variable: str, default: str = "") -> str:
    return os.environ.get(variable) or default


class SchedulerApp(Application):
    """All settings of the process; each has a variable of its environment, see its help."""

    name = "benchpool-scheduler"
    description = "The scheduler of benchpool, as a service of JupyterHub."

    state = traitlets.Unicode(help="State folder; BENCHPOOL_STATE.").tag(config=True)
    configuration_file = traitlets.Unicode(
        help="benchpool.yaml; BENCHPOOL_CONFIG, else the one in the state folder."
    ).tag(config=True)
    settings_file = traitlets.Unicode(
        help="A traitlets file (Python) with settings of SchedulerApp; BENCHPOOL_SETTINGS."
    )
    accounts = traitlets.Enum(
        ("shared", "system"),
        help="`system` runs jobs as the system account of their user; BENCHPOOL_ACCOUNTS.",
    ).tag(config=True)
    simulated_gpus = traitlets.Integer(
        0,
        min=0,
        max=1024,
        help="Simulate so many GPUs instead of using this machine's; BENCHPOOL_SIMULATED_GPUS.",
    ).tag(config=True)
    gpu_model = traitlets.Unicode(help="Model of simulated GPUs; BENCHPOOL_GPU_MODEL.").tag(
        config=True
    )
    worker_environment = traitlets.List(
        traitlets.Unicode(),
        help="Variables that every worker gets: NAME takes the scheduler's value, NAME=VALUE "
        "gives one; BENCHPOOL_WORKER_ENVIRONMENT, separated by commas.",
    ).tag(config=True)
    public_url = traitlets.Unicode(
        help="Address of the service for people, for links to jobs; JUPYTERHUB_PUBLIC_URL, else "
        "the path below the Hub's own address."
    ).tag(config=True)

    @traitlets.default("state")
    def _default_state(self) -> str:
        return _from("BENCHPOOL_STATE")

    @traitlets.default("configuration_file")
    def _default_configuration_file(self) -> str:
        return _from("BENCHPOOL_CONFIG") or str(Path(self.state) / "benchpool.yaml")

    @traitlets.default("settings_file")
    def _default_settings_file(self) -> str:
        return _from("BENCHPOOL_SETTINGS")

    @traitlets.default("accounts")
    def _default_accounts(self) -> str:
        return _from("BENCHPOOL_ACCOUNTS", "shared")

    @traitlets.default("simulated_gpus")
    def _default_simulated_gpus(self) -> int:
        return int(_from("BENCHPOOL_SIMULATED_GPUS", "0"))

    @traitlets.default("gpu_model")
    def _default_gpu_model(self) -> str:
        return _from("BENCHPOOL_GPU_MODEL", "A100")

    @traitlets.default("worker_environment")
    def _default_worker_environment(self) -> list[str]:
        return [one for one in _from("BENCHPOOL_WORKER_ENVIRONMENT").split(",") if one]

    @traitlets.default("public_url")
    def _default_public_url(self) -> str:
        return _from("JUPYTERHUB_PUBLIC_URL") or _from("JUPYTERHUB_SERVICE_PREFIX", "/")

    @property
    def prefix(self) -> str:
        """Where the service lies on the Hub, with slashes around."""
        return _from("JUPYTERHUB_SERVICE_PREFIX", "/services/benchpool/")

    @property
    def address(self) -> tuple[str, int]:
        """Where to listen."""
        at = urlsplit(_from("JUPYTERHUB_SERVICE_URL", "http://127.0.0.1:0"))
        return at.hostname or "127.0.0.1", at.port or 0

    def start(self) -> None:
        """Serve until told to end."""
        if self.settings_file:
            self.load_config_file(self.settings_file)
        asyncio.run(Server(self).run())

    def worker_variables(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the administrator's allow-list by value."""
        pairs = [one.partition("=") for one in self.worker_environment]
        return {
            name: value if sign else environ[name]
            for name, sign, value in pairs
            if sign or name in environ
        }


class Server:
    """Everything that one run of the process is made of."""

    def __init__(self, settings: SchedulerApp) -> None:
        self._settings = settings
        self._state = Path(settings.state).absolute()
        self._stop = asyncio.Event()
        self._identity = HubIdentity()
        hub_auth = self._identity.hub_auth
        self._directory = HubDirectory(hub_auth.api_url, hub_auth.api_token)
        self._pool = self._make_pool()
        self._api = Api(self._pool, self._identity)
        self._reloading: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Open the pool, serve, and close everything in order."""
        self._listen_to_signals()
        await self._pool.open()
        server = self._http()
        host, port = self._settings.address
        server.listen(port, host)
        log.info("serving %s on %s:%s", self._settings.prefix, host, port)
        try:
            await self._stop.wait()
        finally:
            log.info("ending; jobs run on")
            server.stop()
            self._api.end_streams()
            await _within(END_PATIENCE_S, server.close_all_connections())
            await self._pool.close()
            await self._directory.close()
            await self._identity.close()

    def _make_pool(self) -> Pool:
        settings = self._settings
        file = Path(settings.configuration_file)
        accounts: Literal["shared", "system"] = (
            "system" if settings.accounts == "system" else "shared"
        )
        return Pool(
            SqliteStore(self._state / "scheduler"),
            LocalRuntime(self._state, _devices(settings)),
            _configuration(file),
            state=self._state,
            directory=self._directory,
            base_url=settings.public_url.rstrip("/"),
            accounts=accounts,
            environment={
                **allowed_environment(os.environ),
                **settings.worker_variables(os.environ),
            },
            configuration_file=file,
        )

    def _http(self) -> HTTPServer:
        prefix = self._settings.prefix
        rules = [
            *self._api.rules(prefix),
            *self._identity.routes(),
            *web.routes(
                self._pool,
                self._identity,
                prefix=prefix,
                hub_prefix=_from("JUPYTERHUB_BASE_URL", "/") + "hub/",
            ),
        ]
        application = WebApplication(
            rules,
            cookie_secret=cookie_secret(self._state / "scheduler" / "cookie-secret"),
            log_function=_log_request,
            compress_response=False,
        )
        return HTTPServer(
            application,
            xheaders=True,
            max_body_size=16 * MIB,
            max_header_size=64 * 1024,
            body_timeout=600,
            idle_connection_timeout=120,
        )

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _reload(self) -> None:
        self._reloading = asyncio.get_running_loop().create_task(self._read_again())

    async def _read_again(self) -> None:
        """Read the configuration again and say what came of it (SIGHUP)."""
        try:
            change = await self._pool.reload_configuration()
        except BenchpoolError as refused:
            log.error("the configuration stays as it was: %s", refused.message)
            return
        for line in (*change.warnings, *change.changes):
            log.info("configuration: %s", line)
        log.info("configuration: in force, %d changes", len(change.changes))


def cookie_secret(path: Path) -> bytes:
    """Return the secret that signs cookies, made once: sessions survive a restart."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        known = path.read_bytes()
        if len(known) >= 32:
            return known
        path.unlink()  # a crash cut it off
        return cookie_secret(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secrets.token_bytes(32))
    return path.read_bytes()


def _devices(settings: SchedulerApp) -> DeviceSource:
    if settings.simulated_gpus:
        return simulated(settings.simulated_gpus, settings.gpu_model)
    return find_devices() or simulated(SIMULATED_GPUS, settings.gpu_model)


def _configuration(file: Path) -> configuration.Configuration:
    try:
        text = file.read_text()
    except OSError as failed:
        raise InvalidInput(
            f"{file} cannot be read ({failed.strerror}).", field="config"
        ) from failed
    return configuration.load(text, str(file))


def _log_request(handler: RequestHandler) -> None:
    """Log what was answered without query texts, which may hold tokens."""
    request, status = handler.request, handler.get_status()
    level = logging.WARNING if status >= 500 else logging.DEBUG
    log.log(level, "%d %s %s %.0f ms", status, request.method, request.path,
            1000 * request.request_time())  # fmt: skip


async def _within(seconds: float, work: Any) -> None:
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        log.warning("connections stayed open for %s s and are cut", seconds)


def main() -> None:
    """Run the process; an error that a person can act on is one line."""
    logging.basicConfig(
        level=_from("BENCHPOOL_LOG_LEVEL", "INFO"),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    # One line per request of the Hub's client library is noise, and names URLs.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        SchedulerApp.launch_instance(argv=sys.argv[1:])
    except BenchpoolError as error:
        log.error("%s", error.message)
        sys.exit(error.exit_status)


if __name__ == "__main__":
    main()
