"""A sweep in JupyterLab: set up in the dialog, one row in the panel, stopped from there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LEARNS = """\
import sys, time
import benchpool

rate = float(sys.argv[1].removeprefix("--lr="))
for step in range(1_000_000):
    benchpool.log(loss=rate, step=step)
    time.sleep(0.2)
"""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    (one.home / "learns.py").write_text(LEARNS)
    one.log_in()
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_sweep_is_one_row_with_best_trial_first(
    joe: Person,
) -> None:
    joe.open_file_dialog("learns.py")
    fold = joe.dialog.get_by_test_id("benchpool-sweep")
    fold.locator("summary").click()
    fold.get_by_role("button", name="Try several values of a name").click()
    fold.get_by_label("Name 1", exact=True).fill("lr")
    fold.get_by_label("Values of lr").fill("log:1")
    expect(fold.get_by_role("alert")).to_contain_text("'log:1' is not a range for 'lr'.")
    fold.get_by_label("Values of lr").fill("0.3, 0.1, 0.2")
    fold.get_by_label("Metric", exact=True).fill("loss")
    fold.get_by_label("At once").fill("2")
    fold.get_by_label("A trial takes").fill("2")
    cost = fold.get_by_test_id("benchpool-sweep-cost")
    expect(cost).to_have_text("3 trials, about 6.00 GPU-hours; 4 h if 2 run at a time.")
    joe.look("sweep-in-the-dialog")
    joe.send()
    row = joe.page.locator(".bp-Sweep", has_text="learns")
    expect(row).to_contain_text("2 of 3 trials begun: 2 under way.", timeout=PATIENCE_MS)
    expect(row).to_contain_text("The lowest loss is 0.1, of trial 1.", timeout=PATIENCE_MS)
    row.get_by_role("button", name="learns").click()
    trials = row.locator("[data-trial]")
    expect(trials.first).to_contain_text("★ 1 lr 0.1: loss 0.1 at step", timeout=PATIENCE_MS)
    expect(trials.nth(1)).to_contain_text("lr 0.3")
    trials.first.get_by_role("button").click()
    expect(trials.first.locator(".bp-Row-name")).to_have_text("learns #1")
    joe.look("sweep-in-the-panel")
    trials.first.get_by_role("button").first.click()
    row.get_by_role("button", name="Stop…").click()
    dialog = joe.page.get_by_role("dialog")
    expect(dialog).to_contain_text("No further trial starts, and 2 trials under way end")
    joe.look("sweep-asks-before-it-stops")
    dialog.get_by_role("button", name="Stop and end its trials").click()
    expect(row).to_contain_text("2 stopped early", timeout=PATIENCE_MS)
    expect(row.get_by_role("button", name="Stop…")).to_have_count(0)
