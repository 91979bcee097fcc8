"""benchpool for the kernels of this server, also for those whose Python lacks it."""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from pathlib import Path

from benchpool.foreign.link import PACKAGE, PYTHON
from benchpool_scheduler.worker import job_package


def offer(environ: MutableMapping[str, str], folder: Path) -> None:
    """Let kernels that start from now on import benchpool.

    Args:
        environ: The server's own environment, copied to kernels and terminals.
        folder: A folder of this user, for the file that they import.
    """
    try:
        content = job_package.kernel_content()
        target = job_package.place(folder, content)
        job_package.write(target, content)
    except OSError as failed:
        logging.getLogger(__name__).warning("kernels without benchpool get none: %s", failed)
        return
    environ[PYTHON] = sys.executable
    environ[PACKAGE] = str(target)
    environ["PYTHONPATH"] = job_package.on_path(environ, str(target))
