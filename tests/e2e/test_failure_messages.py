"""A failure has the same message in notification, panel, page, terminal and Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from nbformat import v4, writes
from playwright.sync_api import expect

from benchpool_scheduler.worker.supervisor import probe
from benchpool_support.people import Person
from benchpool_support.workstation import COMMAND, RunningWorkstation

pytestmark = pytest.mark.e2e

BOOK = ["rate = 0.5", "notes = {'b': rate}\nprint(notes['a'])"]
DIES = ["rate = 0.5", "import os\nos._exit(7)"]


@dataclass(frozen=True)
class Failing:
    """A failing job with its expected message."""

    name: str
    content: str
    message: str
    options: tuple[str, ...] = ()


FAILURES = [
    Failing("book.ipynb", "", "book failed in cell 2 with KeyError: 'a' (line 2)."),
    Failing("dies.ipynb", "", "dies failed in cell 2: its Python ended with exit code 7."),
    Failing(
        "boom.py",
        "rate = 1\n\n\ndef fit():\n    raise ValueError('no such rate')\n\n\nfit()\n",
        "boom failed with ValueError: no such rate (boom.py, line 5).",
    ),
    Failing(
        "lacks.py",
        "from importlib import import_module\n\nimport_module('zzz_none')\n",
        "lacks failed with ModuleNotFoundError: No module named 'zzz_none' (lacks.py, line 3).",
    ),
    Failing(
        "gives_up.py",
        "import os\n\nos.abort()\n",
        "gives_up was ended by SIGABRT: it aborted, as the C library and CUDA do after an error.",
    ),
    Failing(
        "endless.py",
        "import time\n\ntime.sleep(3600)\n",
        "endless was ended at its time limit (1 s).",
        ("--time-limit", "1s"),
    ),
    Failing(
        "hungry.py",
        "data = b'x' * (512 << 20)\n",
        "hungry ran out of memory: it needed more than the 0.125 GiB that it requested.",
        ("--memory", "0.125"),
    ),
]


@pytest.fixture(scope="module")
def susan(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    """Yield susan with a server without GPUs."""
    one = person("susan")
    for failing in FAILURES:
        (one.home / failing.name).write_text(failing.content)
    for name, cells in (("book.ipynb", BOOK), ("dies.ipynb", DIES)):
        (one.home / name).write_text(
            writes(v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells]))
        )
    one.log_in()
    if workstation.servers("susan"):
        workstation.stop_server("susan")
    one.start_server(0)
    yield one
    for failing in FAILURES:
        (one.home / failing.name).unlink()
    workstation.stop_server("susan")


@dataclass(frozen=True)
class Terminal:
    """A user's terminal with the environment of a notebook server."""

    environ: dict[str, str]
    home: str

    def run(self, *command: str) -> str:
        """Run a command and return its output."""
        done = subprocess.run(
            command, env=self.environ, cwd=self.home, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def terminal(susan: Person, workstation: RunningWorkstation) -> Terminal:
    """Return susan's terminal."""
    theirs = {
        "BENCHPOOL_URL": f"{susan.url}/services/benchpool",
        "BENCHPOOL_TOKEN": workstation.token_of("susan"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return Terminal(os.environ | theirs, str(susan.home))


@pytest.mark.parametrize("failing", FAILURES, ids=lambda each: each.name)
def test_failure_message_is_identical_on_every_screen(
    susan: Person, terminal: Terminal, workstation: RunningWorkstation, failing: Failing
) -> None:
    if failing.name == "hungry.py" and "memory" not in probe.look().bounds:
        pytest.skip("this machine does not let us bound memory")
    sent = terminal.run(*COMMAND, "submit", "--json", *failing.options, failing.name)
    id_ = re.findall(r'"id": "(\w{26})"', sent)[0]
    job = workstation.wait_job(id_, "failed", timeout_s=180)
    assert job["reason"]["text"] == failing.message
    assert failing.message in terminal.run(*COMMAND, "jobs")
    assert failing.message in terminal.run(*COMMAND, "show", id_[:8])
    printed = terminal.run(sys.executable, "-c", f"import benchpool; print(benchpool.job('{id_}'))")
    assert failing.message in printed
    assert susan.page.url.startswith(f"{susan.url}/user/susan/")
    susan.open_panel()
    row = susan.row(job["name"])
    expect(row).to_contain_text(failing.message)
    expect(susan.open_row(job["name"])).to_contain_text(failing.message)
    # Notifications stay in the list behind the bell after they have left the corner.
    susan.page.locator(".jp-Notification-Status").click()
    listed = susan.page.locator(".jp-Notification-List", has_text=failing.message)
    expect(listed).to_be_visible()
    susan.page.keyboard.press("Escape")
    with susan.page.context.new_page() as page:
        page.goto(f"{susan.url}{job['url']}" if job["url"].startswith("/") else job["url"])
        expect(page.get_by_text(failing.message).first).to_be_visible()
