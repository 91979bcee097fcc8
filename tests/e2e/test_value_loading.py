"""*Load into notebook* without a notebook, and in a notebook that has not imported benchpool."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nbformat import v4, writes
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_value_is_loaded_with_missing_import(
    person: Callable[..., Person], workstation: RunningWorkstation
) -> None:
    workstation.clear()
    susan = person("susan")
    book = v4.new_notebook(cells=[v4.new_code_cell("import benchpool\n\nsquares = [1, 4, 9]")])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (susan.home / "squares.ipynb").write_text(writes(book))
    susan.log_in()
    susan.start_server(0)
    susan.open_panel()
    susan.send_file("squares.ipynb", gpus=1)
    susan.expect_state("squares", "succeeded")
    line = f'squares = benchpool.job("{susan.id_of("squares")}")["squares"]'

    # No notebook is open: a message shows the code.
    details = susan.open_row("squares")
    details.get_by_role("button", name="Load squares into notebook").click()
    message = susan.page.locator(".jp-Dialog")
    expect(message).to_contain_text("Open a notebook first, or run these lines in one:")
    expect(message).to_contain_text(f"import benchpool\n\n{line}")
    susan.page.keyboard.press("Escape")
    expect(message).to_have_count(0)

    # The cell with the import has run in the job, but not in this notebook's kernel.
    susan.open_file("squares.ipynb")
    susan.wait_for_kernel()
    susan.open_panel()
    number = susan.load_value(susan.open_row("squares"), "squares")
    expect(susan.cell(number).locator(".cm-line")).to_have_text(["import benchpool", "", line])
    assert susan.show_value(number, "squares") == "[1, 4, 9]"
