"""Configuration of both for ``jupyter-server-proxy``; unused without it."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

START_S = 60.0
"""Start timeout, in seconds. Both import much before they answer, especially on a busy machine."""


def tensorboard() -> dict[str, Any]:
    """Return the configuration that starts and shows TensorBoard."""
    return _entry("tensorboard", "TensorBoard")


def trackio() -> dict[str, Any]:
    """Return the configuration that starts and shows Trackio's dashboard."""
    return _entry("trackio", "Trackio")


def _entry(library: str, title: str) -> dict[str, Any]:
    module = f"benchpool.tracker_views.serve_{library}"
    return {
        "command": [sys.executable, "-m", module, "{unix_socket}", "{base_url}" + library],
        "unix_socket": True,
        "timeout": START_S,
        # An open page sends requests all the time: that does not count as activity.
        "update_last_activity": False,
        "launcher_entry": {
            "enabled": find_spec(library) is not None,
            "title": title,
            "category": "Training",
            "icon_path": str(Path(__file__).with_name("chart.svg")),
        },
    }
