"""The story of the tutorial: Susan borrows GPUs, loses them to a reclaim, and finishes normally."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from benchpool_support import small_network
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1800)]


def uninterrupted(folder: Path) -> str:
    """Run the same code outside the pool; return its printed result."""
    script = folder / "uninterrupted.py"
    script.write_text(small_network.program(small_network.ALONE))
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=folder, check=True, capture_output=True, text=True
    )
    return small_network.result(ran.stdout)


def begin(person: Person) -> Person:
    """Log in and start a notebook server with the one GPU of the bench."""
    person.log_in()
    person.start_server(1)
    return person


def test_reclaimed_job_ends_with_uninterrupted_result(
    workstation: RunningWorkstation, person: Callable[..., Person], tmp_path: Path
) -> None:
    workstation.clear()
    expected = uninterrupted(tmp_path)
    susan, joe, jemma = person("susan"), person("joe"), person("jemma")
    (susan.home / "train.ipynb").write_text(small_network.notebook(small_network.ALONE))
    (susan.home / ".busy").touch()
    for other in (joe, jemma):
        (other.home / "use_two.py").write_text(small_network.SCRIPT)

    # Susan opens a notebook on her bench GPU and works in cells.
    susan.log_in()
    susan.open_start_form()
    expect(susan.page.get_by_text("build quota").first).to_be_visible()
    susan.look("start-form")
    susan.start_server(1)
    susan.open_file("train.ipynb")
    susan.wait_for_kernel()
    for number in range(1, 6):
        susan.run_cell(number)
    expect(susan.cell(5).locator(".jp-OutputArea-output")).to_contain_text("loss after one step")

    # She sends the training cell with four GPUs: two within her quota, two over it.
    susan.select_cell(6)
    susan.press_send_button()
    susan.choose_gpus(4)
    expect(susan.dialog).to_contain_text("2 over")
    expect(susan.dialog.get_by_test_id("benchpool-simulated")).to_be_visible()
    susan.look("send-dialog")
    susan.send()
    expect(susan.badge(6)).to_have_attribute("data-state", "running")
    susan.open_panel()
    susan.expect_state("train", "running")
    susan.look("running-over-quota")

    # Joe takes the two free GPUs; Jemma claims her quota, and Susan's surplus is reclaimed.
    begin(joe).open_panel()
    joe.send_file("use_two.py", gpus=2)
    joe.expect_state("use_two", "running")
    susan.expect_state("train", "running")
    begin(jemma).open_panel()
    jemma.send_file("use_two.py", gpus=2)
    jemma.expect_state("use_two", "running")
    susan.expect_state("train", "queued")
    details = susan.open_row("train")
    expect(details.get_by_test_id("benchpool-reason")).to_contain_text(re.compile(r"\d"))
    expect(details.get_by_test_id("benchpool-preemptions")).to_contain_text("jemma")
    expect(details).to_contain_text("saved at step")
    susan.look("paused-for-jemma")

    # Her notebook was never touched: the same kernel still has her names.
    susan.run_cell(5)
    expect(susan.cell(5).locator(".jp-InputPrompt")).to_have_text("[6]:")
    # The status bar shows the use of her bench's GPU, and that the GPU is simulated.
    chip = susan.page.get_by_test_id("benchpool-gpus")
    expect(chip).to_have_text(re.compile(r"^GPU 0: \d+ % · (.+ · )?simulated$"))
    expect(chip).to_have_attribute("title", re.compile("the processor use of your processes"))
    # One click in the panel leads to the settings of mail and chat notifications.
    messages = susan.panel.get_by_role("link", name="Notifications by mail or chat")
    expect(messages).to_have_attribute("href", re.compile("/services/benchpool/notifications$"))

    # GPUs become free; the job resumes from its checkpoint automatically and finishes.
    (susan.home / ".busy").unlink()
    jemma.cancel("use_two")
    susan.expect_state("train", "succeeded")
    details = susan.open_row("train")
    expect(details.get_by_test_id("benchpool-attempts").locator("li")).to_have_count(2)
    expect(details).to_contain_text("resumed at step")
    expect(details).to_contain_text(expected)
    susan.look("finished")

    # The executed copy opens, and its files are where the notebook can open them.
    susan.open_executed_copy(details)
    susan.scroll_to(susan.notebook.locator(".jp-OutputArea-output", has_text=expected))
    susan.look("executed-copy")
    assert list(susan.home.glob("benchpool-results/*/weights.json"))
    joe.cancel("use_two")
