"""A real Hub, scheduler and JupyterLab for three researchers, and a real browser."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchpool_support import windows
from benchpool_support.people import Person
from benchpool_support.windows import browser as browser
from benchpool_support.windows import (
    pytest_runtest_makereport as pytest_runtest_makereport,
)
from benchpool_support.workstation import RunningWorkstation, start

CONFIGURATION = """\
version: 1
build:
  users: {susan: 1, joe: 1, jemma: 1}
projects:
  - {name: research, quota: 6}
  - {name: susan, parent: research, quota: 2, members: [susan], leads: [susan]}
  - {name: joe, parent: research, quota: 2, members: [joe]}
  - {name: jemma, parent: research, quota: 2, members: [jemma]}
  - {name: nora, parent: research, members: [nora]}
policy: {grace_s: 120}
"""


@pytest.fixture(scope="session")
def workstation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """Yield ``benchpool up`` with nine simulated GPUs: three on benches, six in the pool."""
    folder = tmp_path_factory.mktemp("workstation")
    config = folder / "benchpool.yaml"
    config.write_text(CONFIGURATION)
    with start(
        folder / "state", gpus=9, config=config, arguments=("--gpu-model", "A100")
    ) as running:
        yield running


@pytest.fixture(scope="module")
def person(workstation: RunningWorkstation, browser: Browser) -> Iterator[Callable[..., Person]]:
    """Yield a factory of users with browser windows.

    At the end, windows and servers are closed and the layout of JupyterLab is forgotten, so that
    the next file does not find open notebooks or panels.
    """
    names, homes = set[str](), workstation.state / "homes"

    def make(name: str, **context: object) -> Person:
        names.add(name)
        home: Path = homes / name
        home.mkdir(parents=True, exist_ok=True)
        password = workstation.shared_password
        url = workstation.ready["url"]
        return windows.opened(Person(browser, url, name, password, home, **context))

    yield make
    windows.close_all()
    for name in names:
        if workstation.hub.get(f"/users/{name}").status_code == 200:
            for server in workstation.servers(name):
                workstation.stop_server(name, server)
        for layout in (homes / name / ".jupyter/lab/workspaces").glob("*"):
            layout.unlink()


@pytest.fixture
def administrator(workstation: RunningWorkstation, browser: Browser) -> Iterator[Person]:
    """Yield the account that started the workstation, with its own browser window."""
    password = (workstation.state / "admin-password").read_text().strip()
    name = getpass.getuser()
    with_window = Person(browser, workstation.ready["url"], name, password)
    yield windows.opened(with_window)
    windows.OPEN.remove(with_window)
    with_window.leave()
