"""Folders for the cluster's builds and its running state.

Nothing is created here: the writer creates the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

GO = Path(__file__).resolve().parents[1] / "go"


def cache() -> Path:
    """Return the folder of all builds; ``BENCHPOOL_CLUSTER_CACHE`` moves it."""
    given = os.environ.get("BENCHPOOL_CLUSTER_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "benchpool" / "cluster"


def state() -> Path:
    """Return the folder of the only cluster with real nodes that a machine may run."""
    return cache() / "state"
