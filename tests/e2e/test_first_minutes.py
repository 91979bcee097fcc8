"""Somebody's first ten minutes: a way in from the Launcher, without a file of one's own."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


def test_a_newcomer_is_told_three_hints_opens_the_example_and_sends_its_cell(
    workstation: RunningWorkstation, person: Callable[..., Person]
) -> None:
    nora = person("nora")
    nora.log_in()
    nora.start_server(0)

    # The Launcher has two cards of ours; a notice offers the hints.
    launcher = nora.page.locator(".jp-Launcher")
    expect(launcher.get_by_role("heading", name="Training")).to_be_visible()
    nora.look("launcher")
    nora.page.get_by_role("button", name="Three hints").click()
    hints = nora.panel.get_by_test_id("benchpool-hints")
    expect(hints.locator("li")).to_have_count(3)

    # The example lies in the new home, and the card opens it.
    assert (nora.home / "training-example.ipynb").is_file()
    launcher.locator(".jp-LauncherCard", has_text="Training example").click()
    nora.wait_for_kernel()
    button = nora.notebook.locator("[data-jp-item-name='benchpool-send'] >> visible=true")
    expect(button).to_have_text("Send to training")
    nora.look("example-notebook")

    # Its cell goes to the pool with what it needs, and ends.
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
    workstation.stop_server("nora")
