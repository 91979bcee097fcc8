"""Serve TensorBoard over the user's job results: ``python -m … SOCKET``, in the home folder."""

from __future__ import annotations

import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_unix_socket
from tornado.wsgi import WSGIContainer

from benchpool.tracker_views import event_folders

LOOK_EVERY_S = 30.0
THREADS = 4


def main(socket: str) -> int:
    """Serve until the process is ended; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="benchpool-tensorboard-") as folder:
        links, root = Path(folder), Path.cwd()
        event_folders.link(links, event_folders.found(root))
        threading.Thread(target=_keep_looking, args=(links, root), daemon=True).start()
        board = import_module("tensorboard.program").TensorBoard(
            server_class=lambda app, flags: SocketServer(app, socket)
        )
        # It would advertise a port, which does not exist, to other programs of the machine.
        board._register_info = lambda server: None
        # Its faster reader would answer any user on a port of the machine.
        board.configure(argv=["tensorboard", f"--logdir={links}", "--load_fast=false"])
        return int(board.main())


def _keep_looking(links: Path, root: Path) -> None:
    pause = threading.Event()
    while not pause.wait(LOOK_EVERY_S):
        event_folders.link(links, event_folders.found(root))


class SocketServer:
    """Server interface that TensorBoard needs, on a socket that only its user can open.

    Args:
        app: TensorBoard's WSGI application.

    Raises:
        OSError: The socket cannot be created.
    """

    def __init__(self, app: Any, socket: str) -> None:
        self._app, self._path = app, socket
        self._socket = bind_unix_socket(socket, mode=0o600)

    def serve_forever(self) -> None:
        """Serve until the process is ended."""
        threads = ThreadPoolExecutor(THREADS)
        server = HTTPServer(WSGIContainer(self._app, executor=threads))
        server.add_socket(self._socket)
        IOLoop.current().start()

    def get_url(self) -> str:
        """Return the address of the socket."""
        return f"unix:{self._path}"

    def print_serving_message(self) -> None:
        """Print the address to the log of the notebook server."""
        print(f"TensorBoard at {self.get_url()}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
