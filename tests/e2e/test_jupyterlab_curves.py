"""Curves in the details of a job in JupyterLab: live, across a pause, and compared with a job."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from benchpool_support.browser import PATIENCE_MS
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LEARNS = """\
import time
import benchpool
from benchpool import checkpoint

for step in checkpoint.loop(range(1_000_000)):
    benchpool.log({"train/loss": 100 / (1 + step), "lr": 0.1}, step=step)
    time.sleep(0.05)
"""


PLAIN = """\
net = Net()
opt = torch.optim.Adam(net.parameters())
seen = []
for epoch in range(10):
    for x, y in loader:
        loss = mse(net(x), y)
        loss.backward()
        opt.step()
        seen.append(loss.item())
"""


@pytest.fixture
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    workstation.clear()
    one = person("joe")
    (one.home / "learns.py").write_text(LEARNS)
    (one.home / "plain.py").write_text(PLAIN)
    one.log_in()
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_job_details_draw_curves_across_pause(joe: Person) -> None:
    joe.send_file("learns.py", gpus=1)
    joe.expect_state("learns", "running")
    curves = joe.open_row("learns").get_by_test_id("benchpool-curves")
    loss = curves.locator('[data-metric="train/loss"]')
    expect(loss.locator("polyline")).to_have_count(1, timeout=PATIENCE_MS)
    before = loss.locator("figcaption").inner_text()
    expect(loss.locator("figcaption")).not_to_have_text(before, timeout=PATIENCE_MS)
    joe.act("learns", "pause")
    joe.expect_state("learns", "paused")
    joe.act("learns", "resume")
    joe.expect_state("learns", "running")
    mark = loss.locator(".bp-Curve-pause title")
    expect(mark).to_contain_text("attempt 2 from step", timeout=PATIENCE_MS)
    loss.get_by_text("In words and as a table").click()
    expect(loss).to_contain_text("over 1 pause; least")
    loss.scroll_into_view_if_needed()
    joe.look("curves-of-a-job")
    with joe.page.expect_popup() as opened:
        curves.get_by_role("link", name="over those of other jobs").click()
    page = opened.value
    expect(
        page.get_by_role("img", name="train/loss over steps").locator("polyline")
    ).to_be_visible()
    page.close()
    joe.cancel("learns")


def test_dialog_offers_checkpoint_lines_and_job_keeps_notes(joe: Person) -> None:
    joe.open_file_dialog("plain.py")
    lines = joe.dialog.get_by_test_id("benchpool-resume-lines")
    expect(lines).to_contain_text("in checkpoint.loop(range(10), net=net, opt=opt, seen=seen):")
    lines.get_by_role("button", name="Copy these lines").click()
    expect(lines.get_by_role("status")).to_have_text(" copied")
    joe.look("lines-offered")
    joe.page.keyboard.press("Escape")
    joe.send_file("learns.py", gpus=1)
    details = joe.open_row("learns")
    details.locator('[data-action="note"]').click()
    note = joe.page.get_by_role("dialog", name="Note “learns”")
    note.get_by_role("textbox", name="Note").fill("warm-up <b>helps</b>")
    note.get_by_role("button", name="Note", exact=True).click()
    written = details.get_by_test_id("benchpool-job-note")
    expect(written).to_have_text("Note: warm-up <b>helps</b>")
    joe.look("note-of-a-job")
    details.locator('[data-action="note"]').click()
    note.get_by_role("textbox", name="Note").fill("")
    note.get_by_role("button", name="Note", exact=True).click()
    expect(written).to_have_count(0)
    joe.cancel("learns")
