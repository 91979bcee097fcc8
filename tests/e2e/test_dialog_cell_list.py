"""The dialog's list of cells: durations, reasons, and facts from the kernel."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from benchpool_support.dialog import write_notebook
from benchpool_support.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

CELLS = (
    "rows = [3, 1, 2]",
    "rows.append(nowhere)",
    "rate = 0.1",
    "print('sent', sorted(rows), rate)",
)


def test_cell_list_shows_kernel_facts_and_sends_selection(
    person: Callable[..., Person],
) -> None:
    joe = person("joe")
    joe.follow_colours_of_the_system()
    write_notebook(joe.home / "cells.ipynb", *CELLS)
    joe.log_in()
    joe.start_server(1)
    joe.open_file("cells.ipynb")
    joe.wait_for_kernel()
    for number in range(3):
        joe.run_cell(number, raises=number == 1)

    # The third cell is edited after its run, and the second cell has failed.
    joe.cell(2).locator(".cm-content").click()
    joe.page.keyboard.press("Control+A")
    joe.page.keyboard.type("rate = 0.2")
    joe.select_cell(3)
    joe.press_send_button()
    expect(joe.dialog.get_by_test_id("benchpool-cells")).to_contain_text("cells 1, 3")
    joe.dialog.get_by_test_id("benchpool-cells").click()
    rows = joe.dialog.locator(".bp-CellList-item")
    expect(rows.nth(0)).to_contain_text("< 1 s")
    expect(rows.nth(1)).to_contain_text("failed in its last run, and is not included")
    problems = joe.dialog.get_by_test_id("benchpool-problems")
    expect(problems).to_contain_text("rate here is from an older version of cell 3")
    expect(joe.dialog.get_by_test_id("benchpool-kernel-note")).to_have_count(0)
    joe.look_around("cells-of-the-dialog")

    # If a required cell is left out, the dialog names the missing name; sending stays possible.
    expect(rows.nth(2).locator("label")).to_have_attribute(
        "title", "Without it rate is missing in cell 4."
    )
    rows.nth(2).locator("input").uncheck()
    expect(rows.nth(2)).to_contain_text("left out by you: rate is missing in cell 4")
    expect(joe.dialog.get_by_test_id("benchpool-send")).to_be_enabled()
    joe.look_around("cells-of-the-dialog-unticked")
    rows.nth(2).locator("input").check()
    expect(rows.nth(2)).to_contain_text("defines rate")
    joe.send()
    joe.open_panel()
    joe.expect_state("cells", "succeeded")
    (copy,) = joe.home.glob("benchpool-results/cells-*/*.ipynb")
    sources = ["".join(each["source"]) for each in json.loads(copy.read_text())["cells"]]
    assert "rate = 0.2" in sources
    assert not any("nowhere" in each for each in sources)
