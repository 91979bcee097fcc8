"""Parameters in the send dialog: typed fields, errors below them, and several values as a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import nbformat
import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TAGGED = "lr = 0.1  # step size\nepochs: int = 3\ndeep = False\nmode = 'fast'"
USES = """\
import benchpool

width = 8
benchpool.log(loss=lr * width, step=1)
print('ran with', lr, epochs, deep, width)
"""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_code_cell(TAGGED, metadata={"tags": ["parameters"]}),
            nbformat.v4.new_code_cell(USES),
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
    expect(given).to_have_text("lr = 0.1 · epochs = 7 · deep = True · mode = fast · width = 16")
    expect(details).to_contain_text("ran with 0.1 7 True 16")


def test_several_values_in_parameter_field_are_sent_as_sweep(joe: Person) -> None:
    joe.open_file_dialog("tuned.ipynb")
    joe.choose_gpus(1)
    form = joe.dialog
    fold, alert = form.get_by_test_id("benchpool-sweep"), form.get_by_role("alert")
    field = form.get_by_test_id("benchpool-parameter-epochs")
    expect(field).to_have_attribute("placeholder", "3", timeout=PATIENCE_MS)
    field.fill("1, 2.5")
    expect(alert).to_contain_text("`epochs` must be a whole number (its default is 3), not 2.5.")
    field.fill("1, 2")
    expect(form).to_contain_text("2 values: 1, 2")
    expect(alert).to_have_count(0)

    form.get_by_role("button", name="Several values of mode").click()
    form.get_by_test_id("benchpool-parameter-mode").fill("fast, slow")
    form.get_by_test_id("benchpool-constants").click()
    form.get_by_test_id("benchpool-parameter-width").fill("2 … 8 log")
    expect(fold).to_contain_text("values drawn from log:2:8")
    expect(alert).to_contain_text("`width` must be a whole number")
    form.get_by_test_id("benchpool-parameter-width").fill("width × 2")
    form.get_by_test_id("benchpool-parameter-lr").fill("3e-5 … 3e-3 log")
    expect(alert).to_contain_text("A sweep with the method random needs a number of trials.")
    fold.get_by_label("Trials").fill("3")
    fold.get_by_label("Method").select_option("tpe")
    expect(alert).to_contain_text("The method tpe needs a metric.")
    fold.get_by_label("Metric", exact=True).fill("loss")
    expect(alert).to_have_count(0)
    fold.get_by_label("Patience").fill("few")
    expect(alert).to_have_text("Patience: a whole number above 0, or empty.")
    fold.get_by_label("Patience").fill("3")
    fold.get_by_label("Good enough").fill("-1")
    fold.get_by_label("A trial takes").fill("2")
    cost = fold.get_by_test_id("benchpool-sweep-cost")
    expect(cost).to_contain_text("3 trials, about 6.00 GPU-hours")
    expect(form.get_by_test_id("benchpool-command")).to_contain_text(
        "--method tpe --metric loss --trials 3 --patience 3 --good-enough -1"
    )
    cost.scroll_into_view_if_needed()
    joe.look("several-values-and-preview-in-the-dialog")
    joe.send()
    row = joe.page.locator(".bp-Sweep", has_text="tuned")
    expect(row).to_contain_text("3 of 3 trials begun: 3 done.", timeout=PATIENCE_MS)
    row.get_by_role("button", name="tuned").click()
    best = row.locator("[data-trial]").first
    expect(best).to_contain_text("★")
    expect(best).to_contain_text("mode")
    expect(row.get_by_role("button", name="Stop…")).to_have_count(0)
    joe.look("sweep-of-parameters-best-first")
