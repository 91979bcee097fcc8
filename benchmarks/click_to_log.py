"""Time from the Enter key in "Send to training" to the job's first log line on the screen.

``python benchmarks/click_to_log.py [--count 20]``: a real hub, JupyterLab and Chromium.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import checkout  # noqa: F401
from playwright.sync_api import expect
from tables import Figure, show

from benchpool_support.people import Person, screen
from benchpool_support.workstation import start

CONFIGURATION = """\
version: 1
projects: [{name: ann, quota: 2, members: [ann]}]
"""
SCRIPT = 'print("first line", flush=True)\n'


def one_send(person: Person, number: int) -> float:
    """Send the script, open its row, and wait for its line; return the seconds."""
    name = f"run{number}"
    # Wait for earlier notifications to close; a stack of them would cover the panel.
    expect(person.page.locator(".Toastify__toast")).to_have_count(0, timeout=30_000)
    person.open_file_dialog(f"{name}.py")
    person.choose_gpus(1)
    began = time.perf_counter()
    person.send()
    log = person.open_row(name).get_by_test_id("benchpool-log")
    expect(log).to_contain_text("first line")
    return time.perf_counter() - began


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20)
    count = options.parse_args().count
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "benchpool.yaml"
        config.write_text(CONFIGURATION)
        with start(Path(folder) / "state", gpus=2, config=config) as up, screen() as browser:
            home = up.state / "homes" / "ann"
            home.mkdir(parents=True)
            for number in range(count):
                (home / f"run{number}.py").write_text(SCRIPT)
            person = Person(browser, up.ready["url"], "ann", up.shared_password, home)
            person.log_in()
            person.start_server(0)
            person.open_panel()
            runs = tuple(one_send(person, number) for number in range(count))
            person.leave()
    show("Send to training", [Figure("Enter to the first log line on the screen", "s", runs)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
