"""A researcher's loop: a cell, its sweep, the best trial's value inserted, the run repeated.

The pictures are those of the tutorial (docs/tutorial/from-cell-to-best-value.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from nbformat import v4, writes
from playwright.sync_api import Locator, expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

DATA = """\
import random
import benchpool

random.seed(0)
points = [(x / 50, 3 * x / 50 + 1 + random.gauss(0, 0.1)) for x in range(100)]"""
PLOT = "preview = sorted(y for _, y in points)[::20]\npreview"
RATE = "lr = 0.01"
TRAIN = """\
w = b = 0.0
for step in range(200):
    errors = [(x, w * x + b - y) for x, y in points]
    w -= lr * sum(2 * e * x for x, e in errors) / len(points)
    b -= lr * sum(2 * e for _, e in errors) / len(points)
    benchpool.log(loss=sum(e * e for _, e in errors) / len(points), step=step)
weights = {"w": round(w, 3), "b": round(b, 3)}"""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    book = v4.new_notebook(cells=[v4.new_code_cell(each) for each in (DATA, PLOT, RATE, TRAIN)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (one.home / "line.ipynb").write_text(writes(book))
    one.log_in()
    one.start_server(0)
    one.fold_file_browser()
    one.open_file("line.ipynb")
    one.wait_for_kernel()
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_sweep_result_is_inserted_and_run_is_repeated(joe: Person) -> None:
    send_sweep(joe)
    best = best_trial(joe)
    bring_back(joe, best)
    run_again(joe, best)


def send_sweep(joe: Person) -> None:
    for number in range(2):
        joe.run_cell(number)
    joe.select_cell(3)
    joe.press_send_button()
    joe.choose_gpus(1)
    expect(joe.dialog.get_by_test_id("benchpool-cells")).to_contain_text(
        "cells 1, 3 (needed before)"
    )
    fold = joe.dialog.get_by_test_id("benchpool-sweep")
    fold.locator("summary").click()
    fold.get_by_role("button", name="Try several values of a name").click()
    fold.get_by_label("Name 1", exact=True).fill("lr")
    fold.get_by_label("Values of lr").fill("0.001, 0.01, 0.1, 0.3")
    fold.get_by_label("Metric", exact=True).fill("loss")
    expect(fold.get_by_test_id("benchpool-sweep-cost")).to_contain_text("4 trials")
    joe.look("loop-dialog")
    joe.send()


def best_trial(joe: Person) -> Locator:
    sweep = joe.page.locator(".bp-Sweep", has_text="line")
    over = joe.page.locator(".Toastify__toast", has_text="Sweep “line” has ended.")
    expect(over).to_have_count(1, timeout=PATIENCE_MS)
    expect(joe.page.locator(".Toastify__toast", has_text="has succeeded")).to_have_count(0)
    expect(sweep).to_contain_text("4 of 4 trials begun: 4 done.", timeout=PATIENCE_MS)
    expect(sweep).to_contain_text("The lowest loss is 0.01")
    if sweep.get_attribute("data-open") == "false":
        sweep.get_by_role("button", name="line").first.click()
    best = sweep.locator("[data-trial]").first
    expect(best).to_contain_text("★ 3 lr 0.3: loss 0.01")
    best.get_by_role("button").first.click()
    curve = best.get_by_test_id("benchpool-curves").locator('[data-metric="loss"] polyline')
    expect(curve).to_have_count(1, timeout=PATIENCE_MS)
    joe.look("loop-best-trial")
    return best


def bring_back(joe: Person, best: Locator) -> None:
    before = joe.notebook.locator(".jp-Cell").count()
    best.get_by_role("button", name="Load weights into notebook").click(timeout=PATIENCE_MS)
    expect(joe.notebook.locator(".jp-Cell")).to_have_count(before + 1)
    loaded = next(
        number
        for number in range(before + 1)
        if 'job["weights"]' in joe.cell(number).inner_text()
        or '["weights"]' in joe.cell(number).inner_text()
    )
    joe.run_cell(loaded)
    joe.look("loop-value-back")


def run_again(joe: Person, best: Locator) -> None:
    best.locator("[data-action='again']").click()
    joe.page.get_by_role("button", name="Show 1 new job").click(timeout=PATIENCE_MS)
    again = joe.page.locator(".bp-List > .bp-Row:not(.bp-Sweep)", has_text="line #3")
    state = again.get_by_test_id("benchpool-state").first
    expect(state).to_have_text("succeeded", timeout=PATIENCE_MS)
    again.locator(".bp-Row-main").click()
    fold = again.get_by_test_id("benchpool-run-changes")
    fold.locator("summary").click()
    expect(fold).to_contain_text("The code is the same.", timeout=PATIENCE_MS)
    fold.scroll_into_view_if_needed()
    expect(joe.page.locator(".Toastify__toast")).to_have_count(0, timeout=PATIENCE_MS)
    joe.look("loop-again")
