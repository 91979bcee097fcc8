"""The dialog after a reload of the page: stored durations and failures, values of the kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.sync_api import expect

from benchpool_support.dialog import write_notebook
from benchpool_support.people import Person
from benchpool_support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

CELLS = (
    "numbers = open('numbers.txt').read().split()",
    "numbers.append(nowhere)",
    "print('sent', numbers)",
)
LONG_RUN = {
    "iopub.execute_input": "2026-11-24T08:00:00Z",
    "shell.execute_reply": "2026-11-24T08:14:00Z",
}


def test_ticked_kernel_value_is_used_by_job(person: Callable[..., Person]) -> None:
    joe = person("joe")
    joe.follow_colours_of_the_system()
    notebook = joe.home / "values.ipynb"
    write_notebook(notebook, *CELLS)
    (joe.home / "numbers.txt").write_text("before")
    joe.log_in()
    joe.start_server(1)
    joe.open_file(notebook.name)
    joe.wait_for_kernel()
    joe.run_cell(0)
    joe.run_cell(1, raises=True)
    joe.page.keyboard.press("Control+s")
    until(lambda: has_ended(notebook, 1), "the notebook stores both runs")
    joe.page.goto("about:blank")  # the kernel keeps running
    make_run_long(notebook)
    (joe.home / "numbers.txt").write_text("after")

    joe.open_file(notebook.name)
    joe.wait_for_kernel()
    joe.select_cell(2)
    joe.press_send_button()
    values = joe.dialog.get_by_test_id("benchpool-values-along")
    expect(values).to_contain_text("numbers recompute 14 min / send ")
    joe.dialog.get_by_test_id("benchpool-cells").click()
    rows = joe.dialog.locator(".bp-CellList-item")
    expect(rows.nth(0)).to_contain_text("14 min")
    expect(rows.nth(1)).to_contain_text("failed")
    tick, first = values.get_by_role("checkbox"), rows.nth(0).locator("input")
    expect(tick).to_be_checked()  # the choice with the least total time
    expect(first).not_to_be_checked()
    joe.look_around("values-of-the-dialog")
    tick.uncheck()
    expect(first).to_be_checked()
    expect(rows.nth(1)).to_contain_text("failed in its last run, and is not included")
    joe.look_around("values-of-the-dialog-unticked")
    tick.check()
    expect(first).not_to_be_checked()
    joe.send()
    joe.open_panel()
    joe.expect_state("values", "succeeded")
    (copy,) = joe.home.glob("benchpool-results/values-*/*.ipynb")
    assert "sent ['before']" in copy.read_text()
    assert "numbers.txt" not in copy.read_text()


def has_ended(notebook: Path, number: int) -> bool:
    """Return whether the notebook stores the end of a cell's run, as the Hub's settings ask."""
    try:
        cells: list[dict[str, Any]] = json.loads(notebook.read_text())["cells"]
    except json.JSONDecodeError:  # JupyterLab is writing it
        return False
    return "shell.execute_reply" in cells[number]["metadata"].get("execution", {})


def make_run_long(notebook: Path) -> None:
    """Let the stored run of the first cell last 14 minutes."""
    book = nbformat.read(notebook, as_version=4)
    book.cells[0].metadata["execution"] = LONG_RUN
    nbformat.write(book, notebook)
