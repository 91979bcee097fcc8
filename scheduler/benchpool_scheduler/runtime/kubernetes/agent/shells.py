"""Shells that the scheduler asks for: their terminals are here, and who uses them is far away.

What is typed is fetched by a request that is held open, what is printed is sent as it comes. A
shell hangs up when it is told to, when the scheduler knows it no more, and when nobody answers.
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
"""Seconds that the scheduler holds a question for what is typed open, and while the terminal does
not take what was typed before."""
AWAY_S = 20.0
"""After so long without an answer a shell hangs up, seconds."""
LAST_S = 1.0
"""At the end of the worker its shells may take so long to say their last words, seconds."""


class WorkerShells:
    """The shells of one worker.

    Args:
        zipped: The agent's own file. ``link``: makes a connection, which stops waiting for a
            scheduler that is away when its event is set.
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

    def open(self, told: Mapping[str, object], supervisor: int | None) -> None:
        """Open one; what is told again is not opened again.

        Args:
            supervisor: Pid of the command's; None while it has not begun.
        """
        id_ = str(told["shell"])
        if id_ not in self._threads:
            thread = threading.Thread(target=self._run, args=(id_, told, supervisor), daemon=True)
            self._threads[id_] = thread
            thread.start()

    def close(self) -> None:
        """End all; the worker has ended, and so those in it have, unless something holds them."""
        self._wait(LAST_S)
        self._over.set()
        for terminal in list(self._terminals.values()):
            terminal.hang_up()
        self._wait(shell_terminal.LEAVES_S + LAST_S)

    def _wait(self, most_s: float) -> None:
        deadline = time.monotonic() + most_s
        for thread in list(self._threads.values()):
            thread.join(max(0.0, deadline - time.monotonic()))

    def _run(self, id_: str, told: Mapping[str, object], supervisor: int | None) -> None:
        try:
            terminal = self._opened(told, supervisor)
        except OSError as error:
            self._tell_end(id_, {"why": error.strerror or str(error)})
            return
        self._terminals[id_] = terminal
        threading.Thread(target=self._type, args=(id_, terminal), daemon=True).start()
        try:
            self._show(id_, terminal)
        finally:
            code = terminal.close()
            del self._terminals[id_]
        self._tell_end(id_, {"exit_code": code})

    def _opened(self, told: Mapping[str, object], supervisor: int | None) -> ShellTerminal:
        """Open a shell. Errors: OSError."""
        if supervisor is None:
            raise ProcessLookupError(3, "the worker's command has not begun yet")
        command = shell_terminal.entering(self._program, supervisor, str(told["term"]))
        rows, columns = int(str(told["rows"])), int(str(told["columns"]))
        return ShellTerminal(command, rows, columns, self._children)

    def _type(self, id_: str, terminal: ShellTerminal) -> None:
        """Type what is typed, until it is hung up or its end was told."""
        link, offset, rest = self._link(self._over), 0, b""
        size: tuple[object, object] | None = None
        while True:
            wait_s, full = (FULL_S, 1) if rest else (TYPED_S, 0)
            path = f"shells/{id_}/typed?offset={offset}&full={full}&wait_s={wait_s:g}"
            if size is not None:
                path += f"&rows={size[0]}&columns={size[1]}"
            try:
                told = json.loads(link.get(path, timeout_s=TYPED_S + 20, patience_s=AWAY_S))
            except (LinkAway, LinkRefused):
                told = {"hang_up": True}
            if told["hang_up"]:
                terminal.hang_up()
                return
            if size != (told["rows"], told["columns"]):
                size = (told["rows"], told["columns"])
                terminal.resize(told["rows"], told["columns"])
            offset = told["next"]
            rest = terminal.write(rest + base64.b64decode(told["data"]))

    def _show(self, id_: str, terminal: ShellTerminal) -> None:
        """Send what is printed, to the end or until nobody takes it."""
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

    def _tell_end(self, id_: str, how: dict[str, object]) -> None:
        try:
            data = json.dumps(how).encode()
            self._link(self._over).post(f"shells/{id_}/ended", data, patience_s=AWAY_S)
        except (LinkAway, LinkRefused):
            return
