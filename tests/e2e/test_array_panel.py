"""An array in JupyterLab: one row with tasks and curves, and a dependent job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

FOLDS = """\
import os, time
import benchpool

task = int(os.environ["SLURM_ARRAY_TASK_ID"])
for step in range(1_000_000):
    benchpool.log(loss=task / (step + 1), step=step)
    time.sleep(0.2)
"""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    (one.home / "folds.py").write_text(FOLDS)
    (one.home / "plot.py").write_text("print('plotted')\n")
    one.log_in()
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_array_is_one_row_with_tasks_and_dependent_job(
    joe: Person,
) -> None:
    joe.open_file_dialog("folds.py")
    joe.dialog.locator(".bp-More > summary").click()
    joe.dialog.get_by_test_id("benchpool-if-hanging").select_option(
        label="notify me; the job keeps running"
    )
    fold = joe.dialog.get_by_test_id("benchpool-sweep")
    fold.locator("summary").click()
    fold.get_by_label("Array").fill("7-3")
    expect(fold.get_by_role("alert")).to_contain_text("from a smaller number to a larger one")
    fold.get_by_label("Array").fill("3,5,7%2")
    fold.get_by_label("A task takes").fill("2")
    cost = fold.get_by_test_id("benchpool-sweep-cost")
    expect(cost).to_have_text("3 tasks, about 6.00 GPU-hours; 4 h if 2 run at a time.")
    joe.look("array-in-the-dialog")
    joe.send()
    row = joe.page.locator(".bp-Sweep", has_text="folds")
    expect(row).to_contain_text("2 of 3 tasks begun: 2 under way.", timeout=PATIENCE_MS)
    expect(row.locator(".bp-Sweep-mark")).to_have_text("Array")
    row.get_by_role("button", name="folds").click()
    expect(row.locator("[data-trial] .bp-Sweep-number")).to_have_text(["3", "5"])
    row.get_by_test_id("benchpool-overlaid").locator("summary").click()
    loss = row.locator('.bp-Overlay[data-metric="loss"]')
    expect(loss.locator("g[data-run]")).to_have_count(2, timeout=PATIENCE_MS)
    expect(loss.locator(".bp-Overlay-runs li")).to_contain_text(["task 3", "task 5"])
    joe.look("array-in-the-panel")
    joe.open_file_dialog("plot.py")
    joe.dialog.locator(".bp-More > summary").click()
    joe.dialog.get_by_test_id("benchpool-after").get_by_text("array folds").click()
    expect(joe.dialog).to_contain_text("Waits for 3 of 3 jobs of array", timeout=PATIENCE_MS)
    joe.look("after-an-array")
    joe.send()
    plot = joe.page.locator(".bp-List > .bp-Row:not(.bp-Sweep)", has_text="plot")
    expect(plot).to_contain_text("Waits for 3 of 3 jobs of array", timeout=PATIENCE_MS)
    row.get_by_role("button", name="Stop…").click()
    dialog = joe.page.get_by_role("dialog")
    expect(dialog).to_contain_text("No further task starts, and 2 tasks under way end")
    dialog.get_by_role("button", name="Stop and end its tasks").click()
    expect(plot.get_by_test_id("benchpool-state").first).to_have_text(
        "cancelled", timeout=PATIENCE_MS
    )
    expect(plot).to_contain_text("folds ended before all of its 3 tasks had started")
