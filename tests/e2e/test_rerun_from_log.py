"""From a run's log back to its code, and the same run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from nbformat import v4, writes
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    """Yield joe with a server without GPUs."""
    one = person("joe")
    one.log_in()
    if workstation.servers("joe"):
        workstation.stop_server("joe")
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_log_location_opens_source_line(joe: Person) -> None:
    (joe.home / "own.py").write_text("def half(x):\n    y = x\n    return y / 0\n")
    book = v4.new_notebook(cells=[v4.new_code_cell(each) for each in ["import own", "own.half(1)"]])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (joe.home / "places.ipynb").write_text(writes(book))
    joe.open_file("places.ipynb")
    joe.wait_for_kernel()
    joe.select_cell(1)
    joe.press_send_button()
    joe.send()
    joe.open_panel()
    joe.expect_state("places", "failed")
    log = joe.open_row("places").get_by_test_id("benchpool-log")
    joe.look("log-places")
    log.get_by_role("button", name="cell 2, line 1").first.click()
    expect(joe.cell(1).locator(".cm-focused")).to_have_count(1)
    log.get_by_role("button", name="own.py").first.click()
    expect(joe.page.locator(".jp-FileEditor:visible")).to_contain_text("return y / 0")
    expect(joe.page.locator("#jp-main-statusbar")).to_contain_text("Ln 3, Col 1")


def test_repeated_run_shows_changes(joe: Person) -> None:
    (joe.home / "own.py").write_text("def half(x):\n    return x / 2\n")
    (joe.home / "data.csv").write_text("1\n")
    cells = ["import own", "print(own.half(1), open('data.csv').read())"]
    book = v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (joe.home / "repeat.ipynb").write_text(writes(book))
    joe.open_file("repeat.ipynb")
    joe.wait_for_kernel()
    joe.select_cell(1)
    joe.press_send_button()
    joe.send()
    joe.open_panel()
    joe.expect_state("repeat", "succeeded")
    (joe.home / "own.py").write_text("raise SystemExit\n")
    (joe.home / "data.csv").write_text("2\n")
    joe.act("repeat", "again")
    joe.page.get_by_role("button", name="Show 1 sent earlier as repeat").wait_for()
    joe.expect_state("repeat", "succeeded")
    details = joe.open_row("repeat")
    expect(details.get_by_test_id("benchpool-log")).to_contain_text("0.5 2")
    fold = details.get_by_test_id("benchpool-run-changes")
    fold.locator("summary").click()
    expect(fold.get_by_role("listitem")).to_have_count(1)
    expect(fold).to_contain_text("data data.csv:")
    expect(fold).to_contain_text("The code is the same.")
    joe.look("run-again")
