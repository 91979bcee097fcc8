"""Where the cluster keeps what it builds and what it runs with.

Nothing here is created: whoever writes makes the folder.
"""

from __future__ import annotations

import os
from pathlib import Path

GO = Path(__file__).resolve().parents[1] / "go"


def cache() -> Path:
    """The folder of all that is built; ``BENCHPOOL_CLUSTER_CACHE`` moves it."""
    given = os.environ.get("BENCHPOOL_CLUSTER_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(given) if given else Path(home) / "benchpool" / "cluster"


def state() -> Path:
    """The folder of the one cluster with real nodes that a machine may run."""
    return cache() / "state"
