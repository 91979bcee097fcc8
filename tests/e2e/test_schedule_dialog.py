"""A schedule in JupyterLab: its times in the dialog, its creation, and the link to its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe", timezone_id="Asia/Tokyo")
    (one.home / "nightly.py").write_text("print('again')\n")
    one.log_in()
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_schedule_is_previewed_and_created_in_dialog(joe: Person) -> None:
    joe.open_file_dialog("nightly.py")
    joe.choose_gpus(1)
    form = joe.dialog
    fold, alert = form.get_by_test_id("benchpool-schedule"), form.get_by_role("alert")
    fold.locator("summary").click()
    every = fold.get_by_label("Every")
    expect(fold.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    every.fill("sometimes")
    expect(alert).to_contain_text("'sometimes' is not a time")
    expect(form.get_by_test_id("benchpool-send")).to_be_disabled()
    every.fill("night at 2")
    times = fold.get_by_test_id("benchpool-next-times")
    expect(times).to_have_text(re.compile(r"^(\w{3} \d+ \w{3} 02:00(, |$)){5}$"))
    expect(form.get_by_test_id("benchpool-starts")).to_contain_text("Asia/Tokyo")
    expect(form.get_by_test_id("benchpool-command")).to_contain_text(
        "--every 'night at 2' --zone Asia/Tokyo nightly.py"
    )

    sweep = form.get_by_test_id("benchpool-sweep")
    sweep.locator("summary").click()
    sweep.get_by_label("Array").fill("0-3")
    expect(fold.get_by_role("alert")).to_contain_text("cannot be sent at set times")
    sweep.get_by_label("Array").fill("")
    expect(alert).to_have_count(0)
    sweep.locator("summary").click()
    joe.look("schedule-in-the-dialog")

    expect(form.get_by_test_id("benchpool-send")).to_have_text("Create schedule")
    first = str(times.text_content()).partition(",")[0]
    joe.send()
    toast = joe.page.locator(".Toastify__toast", has_text="“nightly” is scheduled.")
    expect(toast).to_contain_text(f"{first} (Asia/Tokyo)", timeout=PATIENCE_MS)
    toast.hover()
    joe.look("schedule-is-confirmed")
    with joe.page.expect_popup() as opened:
        toast.get_by_role("button", name="Show schedules").click()
    page = opened.value
    listed = page.get_by_role("article").filter(has_text="nightly")
    expect(listed).to_contain_text("Asia/Tokyo")
    expect(listed).to_contain_text(first)
    joe.look("schedule-on-its-page", page)
    page.close()
    expect(joe.page.locator(".bp-Row", has_text="nightly")).to_have_count(0)
