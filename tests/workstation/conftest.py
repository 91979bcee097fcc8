"""One running workstation for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchpool_support.workstation import RunningWorkstation, start

CONFIGURATION = """\
version: 1
build:
  default: 0
  users: {susan: 2, joe: 1, jemma: 1, ada: 1}
  reserve: 5
projects:
  - {name: research, quota: 3, members: [susan, joe, jemma], leads: [susan]}
"""


@pytest.fixture(scope="session")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """Yield ``benchpool up`` with eight simulated GPUs and the users susan, joe and jemma."""
    folder: Path = tmp_path_factory.mktemp("workstation")
    config = folder / "pool.yaml"
    config.write_text(CONFIGURATION)
    with start(folder / "state", config=config) as running:
        for user in ("susan", "joe", "jemma", "ada"):
            running.add_user(user)
        yield running
