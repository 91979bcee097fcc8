"""The scheduler's endpoints for agents, served over HTTP on the loopback."""

from __future__ import annotations

import socket
from pathlib import Path

import httpx
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler.api import workers
from benchpool_scheduler.api.agent_endpoint import Agents
from benchpool_scheduler.runtime import WorkerEvent, WorkerId
from benchpool_scheduler.runtime.kubernetes import AgentApi, AgentTokens
from benchpool_scheduler.runtime.kubernetes.attempt_registry import AttemptRegistry, WorkerState
from benchpool_scheduler.worker.folders import Folders
from benchpool_support.real_pods import Bundle

WORKER = WorkerId("j" * 26, 1, 0)
TOKENS = AgentTokens(b"s" * 32)


class ServedAgents:
    """Served endpoints for agents, and the events that they reported."""

    def __init__(self, state: Path, bundle: Bundle | None = None) -> None:
        self.events: list[WorkerEvent] = []
        self.folders = Folders(state)
        self.registry = AttemptRegistry()
        for attempt in (1, 2):
            self.worker_of(attempt)
        self.bundle = bundle or Bundle(train_py="print(1)")
        self._serve(0)
        self.url = f"http://127.0.0.1:{self._port}/workers"

    async def restart(self) -> None:
        """Stop and start with nothing in memory, like a restarted scheduler."""
        await self.close()
        self._serve(self._port)

    def _serve(self, port: int) -> None:
        self.agent_api = AgentApi(
            self.folders, self.events.append, ended=self.registry.ended, log_bytes=1 << 20
        )
        agents = Agents(self.agent_api, TOKENS, self.bundle, 1 << 20)
        self._server = HTTPServer(
            Application(workers.rules(agents, "/")),
            max_body_size=64 * 1024,  # uploaded folders have a limit of their own
        )
        (listening,) = bind_sockets(port, "127.0.0.1", socket.AF_INET)
        self._server.add_sockets([listening])
        self._port = listening.getsockname()[1]

    def worker_of(self, attempt: int) -> WorkerState:
        """Return the state of the first worker of an attempt."""
        workers = self.registry.attempt(WORKER.job, attempt, 0.0).workers
        worker = WorkerId(WORKER.job, attempt, 0)
        return workers.setdefault(0, WorkerState(worker, "node-1", ()))

    def client(self, worker: WorkerId = WORKER, token: str | None = None) -> httpx.AsyncClient:
        """Return a client with the rights of a worker's agent."""
        path = f"{self.url}/{worker.job}/{worker.attempt}/{worker.worker}/"
        bearer = f"Bearer {TOKENS.of(worker) if token is None else token}"
        return httpx.AsyncClient(
            base_url=path, headers={"Authorization": bearer}, trust_env=False, timeout=120
        )

    async def close(self) -> None:
        """Stop the server."""
        self._server.stop()
        await self._server.close_all_connections()
