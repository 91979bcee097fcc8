"""A separate service for each test, or one service for a module whose tests change nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.serving import Served, served


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


@pytest.fixture(scope="module")
def quiet_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Service that the tests of a module share."""
    with served(tmp_path_factory.mktemp("state")) as running:
        yield running
