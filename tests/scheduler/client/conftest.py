"""A real service for the clients."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.serving import Served, served


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running
