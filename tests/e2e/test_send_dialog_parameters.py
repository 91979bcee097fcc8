"""Parameters in the send dialog: typed fields with errors below them, and values in the job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import nbformat
import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TAGGED = "lr = 0.1  # step size\nepochs: int = 3\ndeep = False"


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(TAGGED, metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell("width = 8\nprint('ran with', lr, epochs, deep, width)"),
        ]
    )
    nbformat.write(notebook, one.home / "tuned.ipynb")
    one.log_in()
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_parameters_are_validated_and_passed_to_job(joe: Person) -> None:
    joe.open_file_dialog("tuned.ipynb")
    joe.choose_gpus(1)
    form = joe.dialog
    field = form.get_by_test_id("benchpool-parameter-epochs")
    expect(field).to_have_attribute("placeholder", "3", timeout=PATIENCE_MS)
    expect(form.get_by_test_id("benchpool-parameters")).to_contain_text("step size")

    field.fill("1.5")
    wrong = form.get_by_role("alert")
    expect(wrong).to_contain_text("`epochs` must be a whole number (its default is 3), not 1.5.")
    expect(form.get_by_test_id("benchpool-send")).to_be_disabled()
    field.fill("7")
    expect(wrong).to_have_count(0)
    form.get_by_test_id("benchpool-parameter-deep").select_option("True")
    form.get_by_test_id("benchpool-constants").click()
    form.get_by_test_id("benchpool-parameter-width").fill("16")
    expect(form.get_by_test_id("benchpool-command")).to_contain_text("width=16")
    joe.look_around("parameters-in-the-dialog")
    joe.send()

    joe.expect_state("tuned", "succeeded")
    details = joe.open_row("tuned")
    given = details.get_by_test_id("benchpool-job-parameters")
    expect(given).to_have_text("lr = 0.1 · epochs = 7 · deep = True · width = 16")
    expect(details).to_contain_text("ran with 0.1 7 True 16")
