"""What ``jupyter-server-proxy`` is told of both; without it nobody reads this."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

START_S = 60.0
"""Both import much before they answer, the longer the busier the machine is."""


def tensorboard() -> dict[str, Any]:
    """Return how TensorBoard is started and shown."""
    return _entry("tensorboard", "TensorBoard")


def trackio() -> dict[str, Any]:
    """Return how Trackio's dashboard is started and shown."""
    return _entry("trackio", "Trackio")


def _entry(library: str, title: str) -> dict[str, Any]:
    module = f"benchpool.tracker_views.serve_{library}"
    return {
        "command": [sys.executable, "-m", module, "{unix_socket}", "{base_url}" + library],
        "unix_socket": True,
        "timeout": START_S,
        # A page that is left open asks again and again: that is no use of the server.
        "update_last_activity": False,
        "launcher_entry": {
            "enabled": find_spec(library) is not None,
            "title": title,
            "category": "Training",
            "icon_path": str(Path(__file__).with_name("chart.svg")),
        },
    }
