"""Jupyter server extension: requests of the page to the pool, with the server's identity.

The page never gets the server's token: requests are forwarded by an allow-list. All other requests
are checked against the folder that the notebook server serves.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

PREFIX = "benchpool"


def load(server_app: Any) -> None:
    """Add benchpool's routes to a Jupyter server."""
    from jupyter_core.paths import jupyter_runtime_dir

    from benchpool.server import example, kernel_package, routes, terminals
    from benchpool.server.bench.bench_watch import BenchWatch
    from benchpool.server.bench.scheduler_link import SchedulerLink
    from benchpool.server.parked import holding
    from benchpool.server.pool_access import PoolAccess

    terminals.set_shell(server_app, os.environ)
    kernel_package.offer(os.environ, Path(jupyter_runtime_dir()) / "benchpool")
    settings = server_app.web_app.settings
    settings["benchpool"] = pool = PoolAccess()
    holding.begin(server_app, pool, os.environ)
    link = SchedulerLink.of(pool, os.environ)
    settings["benchpool_bench"] = watch = BenchWatch.of(server_app, link)
    server_app.io_loop.add_callback(watch.run)
    server_app.web_app.add_handlers(".*$", routes.routes(settings["base_url"]))
    # Outside a Hub the folder is a user's working folder, not a home created for the server.
    if "JUPYTERHUB_API_TOKEN" in os.environ:
        example.welcome(Path(server_app.contents_manager.root_dir))
    server_app.log.info("benchpool: send to training from this server")
