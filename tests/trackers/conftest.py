"""Fixtures: a pool whose jobs run with the real trackers, in the environment of those."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.tracked_jobs import TrackedSite, environment, tracked_site


@pytest.fixture(scope="session")
def programs() -> Path:
    """Return the programs folder of the trackers' environment."""
    return environment() / "bin"


@pytest.fixture(scope="module")
def site(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrackedSite]:
    with tracked_site(tmp_path_factory.mktemp("site"), programs / "python") as site:
        yield site
