"""A new user's first ten minutes: from the Launcher, without an own file."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_new_user_sees_hints_and_sends_example_cell(
    workstation: RunningWorkstation, person: Callable[..., Person]
) -> None:
    nora = person("nora")
    nora.log_in()
    nora.start_server(0)

    # The Launcher has two cards of benchpool; a notification offers the hints.
    launcher = nora.page.locator(".jp-Launcher")
    expect(launcher.get_by_role("heading", name="Training")).to_be_visible()
    nora.look("launcher")
    nora.page.get_by_role("button", name="Three hints").click()
    hints = nora.panel.get_by_test_id("benchpool-hints")
    expect(hints.locator("li")).to_have_count(3)

    # The example is in the new home, and the card opens it.
    assert (nora.home / "training-example.ipynb").is_file()
    launcher.locator(".jp-LauncherCard", has_text="Training example").click()
    nora.wait_for_kernel()
    button = nora.notebook.locator("[data-jp-item-name='benchpool-send'] >> visible=true")
    expect(button).to_have_text("Send to training")
    nora.look("example-notebook")

    # Its cell is sent to the pool with its dependencies and succeeds.
    nora.select_cell(4)
    nora.press_send_button()
    nora.choose_gpus(1)
    nora.send()
    nora.expect_state("training-example", "succeeded")
    expect(nora.open_row("training-example")).to_contain_text(re.compile(r"loss after training"))

    # Hints that were read do not come back.
    hints.get_by_role("button", name="Got it").click()
    expect(hints).to_have_count(0)
    nora.page.reload()
    nora.wait_for_lab()
    nora.open_panel()
    nora.expect_state("training-example", "succeeded")
    expect(hints).to_have_count(0)

    # A job that ends while the page is closed is reported once at the next opening.
    nora.act("training-example", "again")
    nora.expect_state("training-example", "running")
    nora.page.goto("about:blank")
    newest = workstation.scheduler.get("/jobs", params={"user": "nora"}).json()[0]
    workstation.wait_job(newest["id"], "succeeded", timeout_s=120)
    away = nora.page.locator(".Toastify__toast", has_text="While you were away")
    nora.open_file("training-example.ipynb")
    expect(away).to_contain_text("While you were away: “training-example” has succeeded.")
    nora.look("while-you-were-away")
    nora.page.reload()
    nora.wait_for_lab()
    nora.open_panel()
    nora.expect_state("training-example", "succeeded")
    expect(away).to_have_count(0)


def test_access_request_is_granted_by_lead_with_one_click(
    workstation: RunningWorkstation, person: Callable[..., Person]
) -> None:
    nora, susan = person("nora"), person("susan")
    nora.log_in()
    nora.page.goto(f"{nora.url}/user/nora/lab")
    nora.wait_for_lab()
    nora.open_panel()
    requests = nora.panel.get_by_test_id("benchpool-access-requests")
    requests.get_by_role("button", name="Request access to a project…").click()
    dialog = nora.page.locator(".jp-Dialog")
    expect(dialog).to_contain_text("benchpool access ask … --reason …")
    dialog.locator("input").fill("susan")
    dialog.get_by_role("button", name="Next").click()
    expect(dialog).to_contain_text("Request access to susan")
    dialog.locator("input").fill("we share data")
    dialog.get_by_role("button", name="Request", exact=True).click()
    expect(requests).to_contain_text("You requested access to project susan")

    susan.log_in()
    susan.start_server(0)
    susan.open_panel()
    asked = susan.panel.get_by_test_id("benchpool-access-requests")
    expect(asked).to_contain_text("nora requests access to project susan: we share data")
    let_in = asked.get_by_role("button", name="Add nora")
    expect(let_in).to_have_attribute("title", "benchpool access add susan nora")
    susan.look("let-in")
    let_in.click()
    expect(let_in).to_have_count(0)

    nora.page.reload()
    nora.wait_for_lab()
    nora.open_panel()
    expect(nora.panel.locator(".bp-Pool-name", has_text="susan")).to_be_visible()
    expect(requests).not_to_contain_text("You requested")
    for name in ("nora", "susan"):
        workstation.stop_server(name)
