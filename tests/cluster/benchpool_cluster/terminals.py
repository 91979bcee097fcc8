"""The terminal of a user of an installed release: the command line as a process."""

from __future__ import annotations

import os
import subprocess
import sys

from benchpool_cluster.sites import SERVICE, Site


def typed(site: Site, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a ``benchpool`` command as a user; return its status, output and errors."""
    environ = os.environ | {
        "BENCHPOOL_URL": f"{site.url}{SERVICE}",
        "BENCHPOOL_TOKEN": site.token(user),
        "COLUMNS": "300",
        "NO_PROXY": "*",
    }
    start = [sys.executable, "-m", "benchpool_scheduler.cli"]
    return subprocess.run([*start, *words], env=environ, capture_output=True, text=True)
