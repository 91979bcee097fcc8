"""Table of addresses and their handlers."""

from __future__ import annotations

import re

from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import url_path_join

from benchpool.server import PREFIX, handlers
from benchpool.server.bench import bench_handlers


def routes(base_url: str) -> list[tuple[str, type[APIHandler]]]:
    """Return the patterns and handlers below a server's base URL."""
    found: dict[str, type[APIHandler]] = {
        r"api/v1/(.+)": handlers.ForwardHandler,
        "prepare": handlers.PrepareHandler,
        "send": handlers.SendHandler,
        "schedule": handlers.ScheduleHandler,
        "result": handlers.ResultHandler,
        "sent": handlers.SentHandler,
        "example": handlers.ExampleHandler,
        "bench": bench_handlers.BenchHandler,
        "bench/keep": bench_handlers.KeepHandler,
        "bench/give-back": bench_handlers.GiveBackHandler,
    }
    return [
        (url_path_join(re.escape(base_url), PREFIX, pattern), handler)
        for pattern, handler in found.items()
    ]
