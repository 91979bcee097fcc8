"""The tutorial "From a cell to the best value", step by step: cells, labels and pictures.

Cells and labels are those of the page, docs/tutorial/from-cell-to-best-value.md.
"""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat import v4, writes
from playwright.sync_api import Locator, expect

from benchpool_support import tutorials
from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

PAGE = tutorials.page("from-cell-to-best-value.md")
DATA, RATE, LOOP, FUNCTION = range(4)
"""Positions of the page's cells in the notebook."""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    book = v4.new_notebook(cells=[v4.new_code_cell(each) for each in PAGE.cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (one.home / "line.ipynb").write_text(writes(book))
    one.log_in()
    one.start_server(0)
    one.open_file("line.ipynb")
    one.fold_file_browser()
    one.wait_for_kernel()
    one.open_panel()
    one.page.get_by_role("button", name="Got it").click()
    yield one
    workstation.stop_server("joe")


def test_tutorial_leads_from_cell_to_best_value(joe: Person, tmp_path: Path) -> None:
    send_function(joe)
    assert watch_curve(joe) == repr(trained("0.01", tmp_path))
    send_sweep(joe)
    best = best_trial(joe)
    compare(joe, best)
    assert load_best(joe, best) == repr(trained("0.3", tmp_path))
    run_again(joe, best)


def trained(lr: str, folder: Path) -> object:
    """Return the weights that the page's loop computes here with a learning rate."""
    program = folder / "loop.py"
    program.write_text("\n".join([PAGE.cells[DATA], f"lr = {lr}", PAGE.cells[LOOP]]))
    return runpy.run_path(str(program))["weights"]


def send_function(joe: Person) -> None:
    for number in (DATA, RATE, LOOP, FUNCTION):
        joe.run_cell(number)
    row = joe.cell(FUNCTION).locator(".jp-OutputArea-output .widget-vbox").first
    expect(row).to_contain_text(re.compile("(running|succeeded) · train"))
    row.scroll_into_view_if_needed()
    joe.look("loop-function")


def watch_curve(joe: Person) -> str:
    """Watch the function's curve; return its loaded value."""
    details = joe.open_row(PAGE.of("train"))
    curve = details.get_by_test_id("benchpool-curves").locator('[data-metric="loss"]')
    # A step that the curve always reaches: the job may have ended when its row is open.
    expect(curve.locator("svg text").last).to_have_text(re.compile("^[2-5][0-9]$"))
    expect(curve.locator("polyline")).to_have_count(1)
    curve.scroll_into_view_if_needed()
    joe.look("loop-curve")
    joe.expect_state("train", "succeeded")
    joe.close_notifications()
    return load(joe, details, joe.id_of("train"), 'result = benchpool.job("…").result()')


def load(joe: Person, details: Locator, job: str, line: str) -> str:
    """Load the value whose line the page gives; return its text in the notebook."""
    name = line.partition(" ")[0]
    number = joe.load_value(details, name)
    inserted = joe.cell(number).locator(".cm-line")
    expect(inserted).to_have_text([PAGE.of(line).replace("…", job)])
    return joe.show_value(number, PAGE.of(name))


def send_sweep(joe: Person) -> None:
    joe.select_cell(LOOP)
    joe.press_send_button()
    joe.choose_gpus(1)
    expect(joe.dialog.get_by_test_id("benchpool-cells")).to_contain_text(
        "cells 1-2 (needed before)"
    )
    fold = joe.dialog.get_by_test_id("benchpool-sweep")
    fold.get_by_text(PAGE.of("Many values")).click()
    fold.get_by_role("button", name=PAGE.of("Try several values of a name")).click()
    fold.get_by_label("Name 1", exact=True).fill(PAGE.of("lr"))
    fold.get_by_label("Values of lr").fill(PAGE.of("0.001, 0.01, 0.1, 0.3"))
    fold.get_by_label(PAGE.of("Metric"), exact=True).fill(PAGE.of("loss"))
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
    joe.close_notifications()
    curve.scroll_into_view_if_needed()
    joe.look("loop-best-trial")
    return best


def compare(joe: Person, best: Locator) -> None:
    with joe.page.expect_popup() as opened:
        best.get_by_role("link", name=PAGE.of("of the other trials")).click()
    page = opened.value
    lines = page.get_by_role("img", name=re.compile("loss over steps")).locator("polyline")
    expect(lines).to_have_count(4)
    marked = page.locator("tbody tr", has=page.get_by_text("★", exact=True))
    expect(marked).to_have_count(1)
    expect(marked).to_contain_text("0.3")
    joe.look("loop-compare", page)
    page.close()


def load_best(joe: Person, best: Locator) -> str:
    """Load the weights of the best trial; return their text in the notebook."""
    job = str(best.locator("[data-job-id]").first.get_attribute("data-job-id"))
    value = load(joe, best, job, 'weights = benchpool.job("…")["weights"]')
    joe.look("loop-value-back")
    return value


def run_again(joe: Person, best: Locator) -> None:
    again = best.locator("[data-action='again']")
    expect(again).to_have_attribute("title", re.compile(PAGE.of("Run again as it was")))
    again.click()
    joe.page.get_by_role("button", name="Show 1 new job").click(timeout=PATIENCE_MS)
    row = joe.page.locator(".bp-List > .bp-Row:not(.bp-Sweep)", has_text="line #3")
    state = row.get_by_test_id("benchpool-state").first
    expect(state).to_have_text("succeeded", timeout=PATIENCE_MS)
    row.locator(".bp-Row-main").click()
    fold = row.get_by_test_id("benchpool-run-changes")
    fold.get_by_text(PAGE.of("Changes since the previous run")).click()
    expect(fold).to_contain_text("The code is the same.", timeout=PATIENCE_MS)
    joe.close_notifications()
    fold.scroll_into_view_if_needed()
    joe.look("loop-again")
