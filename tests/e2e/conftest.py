"""A real hub, scheduler and JupyterLab for three researchers, and a real browser."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from benchpool_scheduler.testing.people import Person, screen
from benchpool_scheduler.testing.workstation import RunningWorkstation, start

CONFIGURATION = """\
version: 1
build:
  users: {susan: 1, joe: 1, jemma: 1}
projects:
  - {name: research, quota: 6}
  - {name: susan, parent: research, quota: 2, members: [susan]}
  - {name: joe, parent: research, quota: 2, members: [joe]}
  - {name: jemma, parent: research, quota: 2, members: [jemma]}
policy: {grace_s: 20}
"""


@pytest.fixture(scope="session")
def workstation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """``benchpool up`` with nine simulated GPUs: three on benches, six in the pool."""
    folder = tmp_path_factory.mktemp("workstation")
    config = folder / "benchpool.yaml"
    config.write_text(CONFIGURATION)
    with start(
        folder / "state", gpus=9, config=config, arguments=("--gpu-model", "A100")
    ) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    with screen() as running:
        yield running


WINDOWS: list[Person] = []
PICTURES = Path(__file__).resolve().parents[2] / "test-results"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep a picture of every open window when a test fails."""
    report = yield
    if report.failed:
        PICTURES.mkdir(exist_ok=True)
        for window in WINDOWS:
            window.page.screenshot(path=PICTURES / f"{item.name}-{window.name}.png")
    return report


@pytest.fixture(scope="session")
def person(workstation: RunningWorkstation, browser: Browser) -> Iterator[Callable[..., Person]]:
    """Make people; their windows are closed at the end."""

    def make(name: str, **context: object) -> Person:
        home: Path = workstation.state / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        password = workstation.shared_password
        one = Person(browser, workstation.ready["url"], name, password, home, **context)
        WINDOWS.append(one)
        return one

    yield make
    for one in WINDOWS:
        one.leave()
    WINDOWS.clear()
