"""A runtime on real nodes, with an address that its agents can reach."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application

from benchpool_scheduler.api import workers
from benchpool_scheduler.api.agent_endpoint import Agents
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.kube import Connection, kinds
from benchpool_scheduler.runtime import SnapshotEntry, WorkerId
from benchpool_scheduler.runtime.kubernetes import ClusterSettings
from benchpool_support.pods import Stand
from benchpool_support.waiting import until_async


class Bundle:
    """Submitted files with the reading interface of the service."""

    def __init__(self, **files: str) -> None:
        self._contents = {
            hashlib.sha256(text.encode()).hexdigest(): text.encode() for text in files.values()
        }
        self.files = tuple(
            SnapshotEntry(name.replace("_py", ".py"), hashlib.sha256(text.encode()).hexdigest())
            for name, text in files.items()
        )

    def add(self, other: Bundle) -> None:
        """Add the contents of another bundle."""
        self._contents |= other._contents

    async def read(self, job: str, sha256: str) -> AsyncIterator[bytes]:
        """Yield the content with this digest."""
        if sha256 not in self._contents:
            raise NotFound("The job has no such content.")
        yield self._contents[sha256]


class RealStand(Stand):
    """Stand with a server for its agents.

    Attributes:
        bundle: Contents that agents may fetch.
    """

    def __init__(
        self, connection: Connection, settings: ClusterSettings, state: Path, at: tuple[str, int]
    ) -> None:
        super().__init__(connection, settings, state, ("node-1", "node-2"))
        self.bundle = Bundle()
        self.at = at
        self.server: HTTPServer | None = None

    async def restarted(self, expected: Sequence[WorkerId]) -> RealStand:
        """Close this stand and open another in its place; its server starts with ``serve``."""
        await self.close()
        other = RealStand(self.connection, self.settings, self.state, self.at)
        other.bundle.add(self.bundle)
        await other.open(expected)
        self.others.append(other)
        return other

    def serve(self) -> None:
        """Start to answer agents."""
        agents = Agents(
            self.runtime.agent_api, self.runtime.tokens, self.bundle, self.settings.carry_bytes
        )
        self.server = HTTPServer(Application(workers.rules(agents, "/api/v1/")))
        self.server.add_sockets(bind_sockets(self.at[1], self.at[0], socket.AF_INET))

    async def hush(self) -> None:
        """Stop to answer agents."""
        if self.server is not None:
            self.server.stop()
            await self.server.close_all_connections()
            self.server = None

    async def log(self, worker: WorkerId) -> str:
        """Return the log of a worker so far."""
        return (await self.runtime.read_log(worker, 0, 1 << 20)).data.decode()

    async def until_logged(self, worker: WorkerId, words: str) -> str:
        """Wait until a worker's log contains these words."""
        return await until_async(
            lambda: self.log(worker),
            lambda: f"{words!r} is in the log; events: {self.events}",
            holds=lambda log: words in log,
        )

    async def until_in_pod_log(self, worker: WorkerId, words: str) -> None:
        """Wait until a worker's log contains these words, according to the cluster."""
        pods = await self.pods(worker.job)
        name = pods[worker.worker]["metadata"]["name"]
        path = kinds.PODS.path(self.settings.namespace, name, "log")

        async def look() -> bool:
            return words in (await self.connection.request("GET", path)).decode()

        await until_async(look)


def url(at: tuple[str, int]) -> str:
    """Return the scheduler's address for agents."""
    return f"http://{at[0]}:{at[1]}/api/v1/workers"
