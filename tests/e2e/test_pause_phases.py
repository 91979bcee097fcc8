"""The phases of a pause as its owner sees them: saving, saved, back."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from nbformat import v4, writes
from playwright.sync_api import Locator, expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TRAINS = """\
import time
from pathlib import Path
from benchpool import checkpoint

saved = checkpoint.latest()
step = int((saved / "step").read_text()) if saved else 466
checkpoint.progress(step / 1000, f"step {step}")
while not checkpoint.should_stop():
    time.sleep(0.05)
while Path(".large-state").exists():  # stands for a state that takes its time to be written
    time.sleep(0.05)
with checkpoint.commit(step + 1) as folder:
    (folder / "step").write_text(str(step + 1))
checkpoint.progress((step + 1) / 1000, f"step {step + 1}")
raise SystemExit(75)
"""
SAVED = re.compile(r"saved at step 467, (nothing|\d+ s) lost")
"""Message of a saved pause; on a busy machine a long shutdown counts as lost time."""

USES_TWO = """\
import time
from benchpool import checkpoint

while not checkpoint.should_stop():
    time.sleep(0.05)
raise SystemExit(3)
"""


@pytest.fixture
def susan(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    """Yield susan with a notebook of one cell that trains and saves slowly."""
    workstation.clear()
    one = person("susan")
    one.follow_colours_of_the_system()
    book = v4.new_notebook(cells=[v4.new_code_cell(TRAINS)])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (one.home / "long.ipynb").write_text(writes(book))
    (one.home / ".large-state").touch()
    one.log_in()
    one.start_server(0)
    one.open_file("long.ipynb")
    one.wait_for_kernel()
    one.open_panel()
    one.fold_file_browser()
    one.select_cell(0)
    yield one
    (one.home / ".large-state").unlink(missing_ok=True)
    workstation.clear()


def toast(person: Person, text: str | re.Pattern[str]) -> Locator:
    """Return the notification with this text."""
    return person.page.locator(".Toastify__toast", has_text=text)


def stands_beside_the_panel(person: Person, notification: Locator) -> None:
    """Wait until a notification, which flies in, covers no part of the panel."""
    person.page.wait_for_function(
        "both => both[0].getBoundingClientRect().right <= both[1].getBoundingClientRect().left",
        arg=[notification.element_handle(), person.panel.element_handle()],
    )


def moment(place: Locator) -> Locator:
    """Return the element of the newest pause, in a row or in a badge."""
    return place.get_by_test_id("benchpool-pause")


def test_pause_phases_appear_in_toast_badge_and_row(
    susan: Person, person: Callable[..., Person], workstation: RunningWorkstation
) -> None:
    susan.press_send_button()
    susan.choose_gpus(6)
    susan.send()
    expect(susan.row("long").locator(".bp-Row-second")).to_contain_text("step 466")
    jemma = person("jemma")
    (jemma.home / "use_two.py").write_text(USES_TWO)
    jemma.log_in()
    jemma.start_server(0)
    jemma.open_panel()
    jemma.send_file("use_two.py", gpus=2)

    # First phase: the claimant, and the time left to save.
    needs = re.compile(r"jemma needs 2 GPUs: saving, \d+ (s|min) left")
    notification = toast(susan, "jemma needs 2 GPUs: saving until")
    expect(notification).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(moment(susan.row("long"))).to_have_text(needs)
    expect(moment(susan.badge(0))).to_have_text(needs)
    stands_beside_the_panel(susan, notification)
    susan.look_around("pause-1-saving", keeping=notification)

    # Second phase: the saved step, and the lost time.
    (susan.home / ".large-state").unlink()
    notification = toast(susan, re.compile(rf"“long”: {SAVED.pattern}\. It resumes by itself\."))
    expect(notification).to_be_visible(timeout=PATIENCE_MS)
    expect(moment(susan.row("long"))).to_have_text(SAVED)
    expect(moment(susan.badge(0))).to_have_text(SAVED)
    expect(toast(susan, "saving until")).to_have_count(0)
    susan.look_around("pause-2-saved", keeping=notification)

    # Third phase: the job runs again.
    jemma.cancel("use_two")
    notification = toast(susan, "“long” is back: attempt 2.")
    expect(notification).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(moment(susan.row("long"))).to_have_text("back: attempt 2")
    expect(moment(susan.badge(0))).to_have_text("back: attempt 2")
    susan.look_around("pause-3-back", keeping=notification)
    susan.cancel("long")


def test_administrator_pause_shows_reason_and_blocks_resume(
    susan: Person, administrator: Person
) -> None:
    susan.press_send_button()
    susan.choose_gpus(2)
    susan.send()
    # A notebook needs some time to begin; before that there is nothing to save.
    expect(susan.row("long").locator(".bp-Row-second")).to_contain_text("step 466")
    administrator.log_in()
    page = administrator.open_job_page(susan.id_of("long"))
    page.get_by_label("Pause long …").click()
    sheet = page.get_by_role("group", name="Pause long")
    sheet.get_by_label("Reason, for susan to read").fill("new driver on lab1")
    administrator.look_around("maintenance-1-asked")
    sheet.get_by_role("button", name="Pause now").click()

    # It saves: each place shows the administrator and the reason.
    text = "paused by root (new driver on lab1): saving".replace("root", administrator.name)
    left = re.compile(re.escape(text) + r", \d+ (s|min) left")
    notification = toast(susan, f"“long”: {text} until")
    expect(notification).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(moment(susan.row("long"))).to_have_text(left)
    expect(moment(susan.badge(0))).to_have_text(left)
    expect(susan.row("long").locator("[data-action='resume']")).to_have_count(0)
    susan.look_around("maintenance-2-saving", keeping=notification)

    # It is paused: saved step, reason and contact are shown, without a resume button.
    (susan.home / ".large-state").unlink()
    ask = (
        f"Ask {administrator.name}: an administrator paused it, and only administrators resume it."
    )
    notification = toast(susan, re.compile(rf"“long”: {SAVED.pattern}\. {re.escape(ask)}"))
    expect(notification).to_be_visible(timeout=PATIENCE_MS)
    susan.expect_state("long", "paused")
    expect(moment(susan.row("long"))).to_have_text(SAVED)
    expect(moment(susan.badge(0))).to_have_text(SAVED)
    expect(susan.badge(0)).to_have_attribute("data-state", "paused")
    because = f"Paused by {administrator.name}: new driver on lab1."
    expect(susan.row("long").locator(".bp-Row-reason")).to_have_text(because)
    expect(susan.row("long").locator("[data-action='cancel']")).to_be_visible()
    expect(susan.row("long").locator("[data-action='resume']")).to_have_count(0)
    details = susan.open_row("long")
    expect(details).to_contain_text(because)
    expect(details).to_contain_text(ask)
    expect(details.get_by_role("button", name="Resume")).to_have_count(0)
    susan.look_around("maintenance-3-paused", keeping=notification)

    # The owner's page offers no resume either; the administrator's page does.
    own = susan.page.context.new_page()
    own.goto(page.url)
    expect(own.get_by_text(ask)).to_be_visible()
    expect(own.get_by_label("Cancel long …")).to_be_visible()
    expect(own.get_by_label(re.compile("^Resume long"))).to_have_count(0)
    own.close()
    page.get_by_role("article").get_by_label("Resume long …").click()
    sheet = page.get_by_role("group", name="Resume long")
    sheet.get_by_label("Reason, for susan to read").fill("the driver is there")
    sheet.get_by_role("button", name="Resume now").click()
    notification = toast(susan, "“long” is back: attempt 2.")
    expect(notification).to_be_visible(timeout=2 * PATIENCE_MS)
    expect(moment(susan.row("long"))).to_have_text("back: attempt 2")
    susan.cancel("long")
