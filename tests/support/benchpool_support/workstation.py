"""A real ``benchpool up`` for tests: hub, proxy, scheduler and notebook servers as processes.

    with start(tmp_path / "state", gpus=9, config=path) as up:
        up.add_user("susan")
        up.start_server("susan", gpus=1)

Everything listens on free ports of the loopback. The started process is stopped by its pid at the
end.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from benchpool_scheduler.workstation import files
from benchpool_scheduler.workstation.ports import Ports
from benchpool_scheduler.workstation.state import StateFolder
from benchpool_support import direct
from benchpool_support.loopback import free_port
from benchpool_support.waiting import until
from benchpool_support.workers import kill_workers

READY_S = 280.0
SERVER_S = 120.0
WAIT_S = 120.0
END_S = 40.0
POLL_S = 0.1

COMMAND = (sys.executable, "-c", "from benchpool_scheduler.cli import main; main()")


class DidNotStart(AssertionError):
    """``benchpool up`` ended before its ready line."""

    def __init__(self, status: int | None, output: str, errors: str) -> None:
        super().__init__(f"benchpool up ended with {status}\n{output}\n{errors}")
        self.status = status
        self.output = output
        self.errors = errors


class RunningWorkstation:
    """Running ``benchpool up`` and its Hub.

    Attributes:
        ready: The ready line.
        state: The state folder.
        config: The pool's configuration.
        hub: Client of the Hub's REST API with administrator rights.
        scheduler: Client of the scheduler's API with administrator rights.
        events: Lines after the ready line.
    """

    def __init__(
        self, process: subprocess.Popen[str], state: Path, config: Path | None = None
    ) -> None:
        self.process = process
        self.state = state
        self.config = config or state / "benchpool.yaml"
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._errors: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        # A pipe without a reader blocks its writer.
        self._reads_errors = threading.Thread(target=self._read_errors, daemon=True)
        self._reads_errors.start()
        self.ready = self._wait_ready()
        self.hub = self._client(self.ready["hub_api"])
        self.scheduler = self._client(self.ready["scheduler_api"])

    def _client(self, url: str, token: str | None = None) -> httpx.Client:
        headers = {"Authorization": f"token {token or self.ready['admin_token']}"}
        return direct.Client(base_url=url, headers=headers, timeout=60)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
            with contextlib.suppress(ValueError):
                event = json.loads(line)
                if event.get("event") != "ready":
                    self.events.put(event)
        self._lines.put(None)

    def _read_errors(self) -> None:
        self._errors.extend(self.process.stderr or ())

    def _wait_ready(self) -> dict[str, Any]:
        seen: list[str] = []
        deadline = time.monotonic() + READY_S
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.process.terminate()
                raise DidNotStart(None, "".join(seen), f"no ready line in {READY_S} s") from None
            if line is None:
                assert self.process.stderr is not None
                self._reads_errors.join(END_S)
                raise DidNotStart(self.process.wait(), "".join(seen), "".join(self._errors))
            seen.append(line)
            with contextlib.suppress(ValueError):
                ready: dict[str, Any] = json.loads(line)
                if ready.get("event") == "ready":
                    return ready

    # ------------------------------------------------------------------ users

    @property
    def shared_password(self) -> str:
        """The password of all users under ``--auth shared-password``."""
        return (self.state / "shared-password").read_text().strip()

    def add_user(self, name: str) -> None:
        """Add a user to the Hub, unless the user exists."""
        answer = self.hub.post(f"/users/{name}")
        assert answer.status_code in (201, 409), answer.text

    def token_of(self, user: str) -> str:
        """Create a token of a user with all of the user's rights."""
        answer = self.hub.post(f"/users/{user}/tokens", json={"note": "test"})
        assert answer.status_code in (200, 201), answer.text
        return str(answer.json()["token"])

    def scheduler_as(self, token: str) -> httpx.Client:
        """Return a client of the scheduler's API with this token."""
        return self._client(self.ready["scheduler_api"], token)

    @contextmanager
    def group(self, name: str, *users: str) -> Iterator[None]:
        """Create a group of the Hub and delete it, since its promises count for all tests."""
        assert self.hub.post(f"/groups/{name}").status_code == 201
        try:
            self.hub.post(f"/groups/{name}/users", json={"users": list(users)})
            yield
        finally:
            self.hub.delete(f"/groups/{name}")

    # ------------------------------------------------------------------ servers

    def ask_server(self, user: str, name: str = "", **options: Any) -> httpx.Response:
        """Request a server; return the Hub's answer: 201 ready, 202 starting, or a refusal."""
        return self.hub.post(_server(user, name), json=options)

    def start_server(self, user: str, name: str = "", **options: Any) -> dict[str, Any]:
        """Start a server, wait until it is ready, and return the Hub's model of it."""
        answer = self.ask_server(user, name, **options)
        assert answer.status_code in (201, 202), answer.text
        return self.wait_server(user, name)

    def wait_server(self, user: str, name: str = "") -> dict[str, Any]:
        """Wait until a server is ready and return the Hub's model of it."""
        found = until(
            lambda: self.servers(user),
            f"server {name!r} of {user} is ready",
            SERVER_S,
            holds=lambda servers: servers.get(name, {}).get("ready"),
        )
        server: dict[str, Any] = found[name]
        return server

    def wait_stopped(self, user: str, name: str = "") -> None:
        """Wait until a server is gone."""
        until(
            lambda: self.servers(user),
            f"server {name!r} of {user} has stopped",
            SERVER_S,
            holds=lambda servers: name not in servers,
        )

    def servers(self, user: str) -> dict[str, Any]:
        """Return the user's running and starting servers by name."""
        answer = self.hub.get(f"/users/{user}")
        assert answer.status_code == 200, answer.text
        servers: dict[str, Any] = answer.json()["servers"]
        return servers

    def stop_server(self, user: str, name: str = "") -> None:
        """Stop a server and wait until it is gone.

        A Hub that has just started answers 500 while it still checks the server.
        """
        answer = until(
            lambda: self.hub.delete(_server(user, name)),
            f"the Hub stops server {name!r} of {user}",
            holds=lambda answer: answer.status_code != 500,
        )
        assert answer.status_code in (202, 204, 404), answer.text
        self.wait_stopped(user, name)

    def server_pid(self, user: str, name: str = "") -> int:
        """Return the pid of a server's process."""
        answer = self.hub.get(f"/users/{user}", params={"include_stopped_servers": "1"})
        return int(answer.json()["servers"][name]["state"]["pid"])

    def leases(self, user: str) -> list[dict[str, Any]]:
        """Return the scheduler's leases of a user."""
        answer = self.scheduler.get("/leases", params={"user": user})
        assert answer.status_code == 200, answer.text
        leases: list[dict[str, Any]] = answer.json()
        return leases

    def held(self, user: str) -> list[dict[str, Any]]:
        """Return the leases of a user without the last activity of their servers."""
        return [
            {key: value for key, value in lease.items() if key != "last_active"}
            for lease in self.leases(user)
        ]

    def wait_leases(self, user: str, gpus: int, timeout_s: float = WAIT_S) -> None:
        """Wait until a user holds exactly this many build GPUs."""
        until(
            lambda: sum(len(lease["gpus"]) for lease in self.leases(user)),
            f"{user} holds {gpus} GPUs",
            timeout_s,
            holds=lambda held: held == gpus,
        )

    # ------------------------------------------------------------------ jobs

    def wait_job(self, id_: str, state: str, timeout_s: float = WAIT_S) -> dict[str, Any]:
        """Wait until a job is in this state and return the job."""
        job: dict[str, Any] = until(
            lambda: self.scheduler.get(f"/jobs/{id_}").json()["job"],
            f"job {id_} is {state}",
            timeout_s,
            holds=lambda job: job["state"] == state,
        )
        return job

    def wait_logins(self, number: int, timeout_s: float = WAIT_S) -> list[tuple[str, str]]:
        """Wait until the audit trail records this number of logins; return users and outcomes."""
        found: list[dict[str, Any]] = self.wait_audit("login", number, timeout_s)
        return [(one["actor"], one["outcome"]) for one in found]

    def wait_audit(
        self, action: str, number: int, timeout_s: float = WAIT_S
    ) -> list[dict[str, Any]]:
        """Wait until the audit trail has this number of records of an action and return them."""
        found: list[dict[str, Any]] = until(
            lambda: self.scheduler.get("/audit", params={"action": action}).json()["records"],
            f"the audit trail has {number} records of {action}",
            timeout_s,
            holds=lambda found: len(found) >= number,
        )
        return found

    # ------------------------------------------------------------------ processes and events

    def hub_pid(self) -> int:
        """Return the pid of the Hub."""
        return _child(self.process.pid, "jupyterhub")

    def scheduler_pid(self) -> int:
        """Return the pid of the scheduler, a descendant of the Hub and of its keeper."""
        keeper = _child(self.hub_pid(), "benchpool_scheduler.app")
        return _child(keeper, "benchpool_scheduler.app")

    def wait_event(self, name: str, timeout_s: float = READY_S) -> dict[str, Any]:
        """Wait for an event line and skip those before it."""
        deadline = time.monotonic() + timeout_s
        passed: list[dict[str, Any]] = []
        while True:
            try:
                event = self.events.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no event {name} in {timeout_s} s, but {passed}") from None
            if event["event"] == name:
                return event
            passed.append(event)

    # ------------------------------------------------------------------ the end

    def clear(self) -> None:
        """Stop all notebook servers and cancel all jobs."""
        for user in self.hub.get("/users", params={"state": "active"}).json():
            for name in user["servers"]:
                self.stop_server(user["name"], name)
        ended = ("succeeded", "failed", "cancelled")
        for job in self.scheduler.get("/jobs", params={"all": "true"}).json():
            if job["state"] not in ended:
                self.scheduler.post(f"/jobs/{job['id']}/cancel", json={})

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Stop ``benchpool up`` by a signal and return its exit status; jobs continue."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=END_S)


def _child(parent: int, word: str) -> int:
    """Return the child of a process that has this word in its command line."""

    def look() -> int | None:
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            with contextlib.suppress(OSError):
                if word in Path(f"/proc/{child}/cmdline").read_text():
                    return int(child)
        return None

    found = until(look, f"process {parent} has a child {word}")
    assert found is not None
    return found


def _server(user: str, name: str) -> str:
    return f"/users/{user}/servers/{name}" if name else f"/users/{user}/server"


def choose_ports(state: Path) -> None:
    """Reserve ports for the first start from a folder, so that no other process takes them.

    The start uses them like the ports of an earlier start. They remain reserved while it is down.
    """
    path = StateFolder(state).hub / "ports.json"
    if not path.exists():
        with contextlib.suppress(OSError):  # the test damages the folder on purpose
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            files.write_json(path, Ports(*(free_port() for _ in range(4))))


@contextmanager
def start(
    state: Path,
    *,
    gpus: int = 8,
    config: Path | None = None,
    auth: str = "shared-password",
    arguments: Sequence[str] = (),
    command: Sequence[str] = COMMAND,
    clear: bool = True,
) -> Iterator[RunningWorkstation]:
    """Run ``benchpool up`` until the block ends.

    Args:
        state: State folder.
        gpus: Number of simulated GPUs.
        config: ``benchpool.yaml``; by default ``up`` writes one.
        auth: Authentication mode.
        arguments: More options.
        command: Command that stands for ``benchpool``.
        clear: Whether to end servers and jobs too.

    Raises:
        DidNotStart: It ended before it was ready.
    """
    line = [*command, "up", "--json", "--state", str(state), "--port", "0", "--gpus", str(gpus),
            "--auth", auth, *(["--config", str(config)] if config else []), *arguments]  # fmt: skip
    choose_ports(state)
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        running = RunningWorkstation(process, state, config)
        try:
            yield running
        finally:  # also after a failure: a notebook server would run on for ever
            if clear and process.poll() is None:
                running.clear()
        running.stop()
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if clear:  # a job that was cancelled just before the scheduler's end may have missed it
            kill_workers(state)
