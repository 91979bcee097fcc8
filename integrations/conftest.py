"""Fixtures of all integration tests: the path of each one's own environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchpool_support import checkout


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """Return the programs folder of the environment that ``make test-orchestrators`` has made."""
    kind = os.environ.get("ORCHESTRATOR_KIND", "")
    found: Path = checkout.ROOT / f".venv-{request.param}{kind}" / "bin"
    assert found.is_dir(), f"{found} does not exist: run make test-orchestrators"
    return found
