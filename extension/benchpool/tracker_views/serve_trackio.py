"""Serve Trackio's dashboard with the user's runs: ``python -m … SOCKET PREFIX``."""

from __future__ import annotations

import os
import sys
from importlib import import_module


def main(socket: str, prefix: str) -> None:
    """Serve until the process is ended.

    Args:
        prefix: Path of the dashboard on the notebook server.
    """
    os.umask(0o077)
    app, _ = import_module("trackio.server").build_starlette_app_only()
    import_module("uvicorn").run(app, uds=socket, root_path=prefix, log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:3])
