"""Shells that the scheduler requests: the terminals run here, the users are remote.

Input is fetched by long polls, and output is sent as it appears. A shell hangs up on request, after
the scheduler dropped it, and when the scheduler does not answer.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from typing import TYPE_CHECKING

from benchpool_scheduler.worker import shell_terminal
from benchpool_scheduler.worker.supervisor_process import Program

from .link import LinkAway, LinkRefused
from .terminal import ShellTerminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .children import Children
    from .link import Link

TYPED_S, FULL_S = 25.0, 0.2
"""Durations of a poll for input, in seconds.

The second one applies while the terminal does not accept the input that it already has.
"""
AWAY_S = 20.0
"""Time without an answer after which a shell hangs up, in seconds."""
LAST_S = 1.0
"""Time for shells to send their last output at the end of the worker, in seconds."""


class WorkerShells:
    """The shells of one worker.

    Args:
        zipped: The agent's zip file. ``link``: creates a connection, which stops waiting for an
            unreachable scheduler when its event is set.
    """

    def __init__(
        self, zipped: str, children: Children, link: Callable[[threading.Event], Link]
    ) -> None:
        self._program = Program.zipped(zipped, "shell_entry")
        self._children = children
        self._link = link
        self._threads: dict[str, threading.Thread] = {}
        self._terminals: dict[str, ShellTerminal] = {}
        self._over = threading.Event()

    def open(self, request: Mapping[str, object], supervisor: int | None) -> None:
        """Open a shell; a repeated request does not open it again.

        Args:
            supervisor: Pid of the command's supervisor; None before the command has begun.
        """
        id_ = str(request["shell"])
        if id_ not in self._threads:
            thread = threading.Thread(
                target=self._run, args=(id_, request, supervisor), daemon=True
            )
            self._threads[id_] = thread
            thread.start()

    def close(self) -> None:
        """Close all shells.

        The worker has ended, so its shells have ended too, unless a process keeps one open.
        """
        self._wait(LAST_S)
        self._over.set()
        for terminal in list(self._terminals.values()):
            terminal.hang_up()
        self._wait(shell_terminal.LEAVES_S + LAST_S)

    def _wait(self, most_s: float) -> None:
        deadline = time.monotonic() + most_s
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, id_: str, request: Mapping[str, object], supervisor: int | None) -> None:
        try:
            terminal = self._opened(request, supervisor)
        except OSError as error:
            self._report_end(id_, {"why": error.strerror or str(error)})
            return
        self._terminals[id_] = terminal
        threading.Thread(target=self._type, args=(id_, terminal), daemon=True).start()
        try:
            self._show(id_, terminal)
        finally:
            code = terminal.close()
            del self._terminals[id_]
        self._report_end(id_, {"exit_code": code})

    def _opened(self, request: Mapping[str, object], supervisor: int | None) -> ShellTerminal:
        """Open a shell. Raises OSError."""
        if supervisor is None:
            raise ProcessLookupError(3, "the worker's command has not started yet")
        command = shell_terminal.entering(self._program, supervisor, str(request["term"]))
        rows, columns = int(str(request["rows"])), int(str(request["columns"]))
        return ShellTerminal(command, rows, columns, self._children)

    def _type(self, id_: str, terminal: ShellTerminal) -> None:
        """Write the user's input to the terminal until it hangs up."""
        link, offset, rest = self._link(self._over), 0, b""
        size: tuple[object, object] | None = None
        while True:
            wait_s, full = (FULL_S, 1) if rest else (TYPED_S, 0)
            path = f"shells/{id_}/typed?offset={offset}&full={full}&wait_s={wait_s:g}"
            if size is not None:
                path += f"&rows={size[0]}&columns={size[1]}"
            try:
                reply = json.loads(link.get(path, timeout_s=TYPED_S + 20, patience_s=AWAY_S))
            except (LinkAway, LinkRefused):
                reply = {"hang_up": True}
            if reply["hang_up"]:
                terminal.hang_up()
                return
            if size != (reply["rows"], reply["columns"]):
                size = (reply["rows"], reply["columns"])
                terminal.resize(reply["rows"], reply["columns"])
            offset = reply["next"]
            rest = terminal.write(rest + base64.b64decode(reply["data"]))

    def _show(self, id_: str, terminal: ShellTerminal) -> None:
        """Send the output, to its end or until the scheduler no longer accepts it."""
        link, offset = self._link(self._over), 0
        try:
            while data := terminal.read():
                while data:
                    path = f"shells/{id_}/printed?offset={offset}"
                    answer = json.loads(link.post(path, data, patience_s=AWAY_S))
                    data = data[answer["next"] - offset :]
                    offset = answer["next"]
        except (LinkAway, LinkRefused):
            return

    def _report_end(self, id_: str, how: dict[str, object]) -> None:
        try:
            data = json.dumps(how).encode()
            self._link(self._over).post(f"shells/{id_}/ended", data, patience_s=AWAY_S)
        except (LinkAway, LinkRefused):
            return
