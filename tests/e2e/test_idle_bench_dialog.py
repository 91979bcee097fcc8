"""An idle bench: the dialog for its owner in JupyterLab, and the reuse of the GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import Browser, expect

from benchpool_support import windows
from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NOTE = "benchpool-idle-bench.md"
CONFIGURATION = """\
version: 1
build: {users: {susan: 1}, lend_idle: true}
projects: [{name: research, members: [susan]}]
idle_benches: {act: true, tell_s: 3, ask_s: 3600, act_s: 7200, keep_s: 30}
"""
SEES = "import os\nprint('GPU', os.environ['CUDA_VISIBLE_DEVICES'] or 'none', 'kept' in dir())"


@pytest.fixture(scope="module")
def workstation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    """Yield a workstation with one GPU, which is susan's bench."""
    folder = tmp_path_factory.mktemp("workstation")
    config = folder / "benchpool.yaml"
    config.write_text(CONFIGURATION)
    often = ("--measure-every", "2")
    with start(folder / "state", gpus=1, config=config, arguments=often) as running:
        yield running


@pytest.fixture
def susan(workstation: RunningWorkstation, browser: Browser) -> Iterator[Person]:
    home: Path = workstation.state / "homes" / "susan"
    home.mkdir(parents=True, exist_ok=True)
    cells = [nbformat.v4.new_code_cell(text) for text in ("kept = 1", SEES)]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(book, home / "work.ipynb")
    url, password = workstation.ready["url"], workstation.shared_password
    yield windows.opened(Person(browser, url, "susan", password, home))
    windows.close_all()


def test_owner_keeps_idle_bench_and_later_lends_gpu(
    workstation: RunningWorkstation, susan: Person
) -> None:
    susan.log_in()
    susan.follow_colours_of_the_system()
    susan.start_server(1)
    susan.open_file("work.ipynb")
    susan.wait_for_kernel()
    susan.run_cell(0)
    _from_now_on(workstation, "ask_s", 6)
    chip = susan.page.get_by_test_id("benchpool-gpus")
    asked = susan.page.get_by_test_id("benchpool-bench-dialog")

    # The dialog opens by itself; a key pressed by accident does not answer it.
    expect(asked).to_contain_text("Your GPU has been idle for", timeout=120_000)
    expect(asked).to_contain_text("the GPU is reclaimed and this server continues without it")
    expect(asked.locator("h2")).to_be_focused()
    expect(chip).to_have_class(re.compile("bp-mod-due"))
    susan.look_around("idle-asked")
    # The send form opens from here without an answer; the chip opens the dialog again.
    asked.get_by_test_id("benchpool-bench-send").click()
    expect(susan.dialog).to_be_visible()
    susan.page.keyboard.press("Escape")
    chip.click()
    expect(asked.get_by_test_id("benchpool-bench-keep")).to_be_enabled()
    # A second window of the user shows the dialog too; an answer in one window closes both.
    other = susan.page.context.new_page()
    other.goto(f"{susan.url}/user/susan/lab")
    expect(other.get_by_test_id("benchpool-bench-dialog")).to_be_visible(timeout=120_000)
    susan.page.bring_to_front()
    asked.locator("h2").focus()
    susan.page.keyboard.press("Tab")
    expect(asked.get_by_test_id("benchpool-bench-keep")).to_be_focused()
    susan.page.keyboard.press("Enter")
    expect(asked).to_have_count(0)
    expect(chip).to_contain_text("kept until")
    expect(other.get_by_test_id("benchpool-bench-dialog")).to_have_count(0)
    other.close()

    # Nothing runs: after the site's idle timeout a waiting job gets the GPU.
    scheduler = workstation.scheduler_as(workstation.token_of("susan"))
    entry = {"kind": "command", "argv": ["sleep", "600"]}
    sent = scheduler.post("/jobs", json={"name": "waits", "gpus": 1, "entry": entry})
    assert sent.status_code == 201, sent.text
    _from_now_on(workstation, "act_s", 9)
    expect(chip).to_contain_text("no GPU: released at", timeout=180_000)
    workstation.wait_job(sent.json()["id"], "running")
    assert workstation.leases("susan") == []
    expect(susan.page.locator(".Toastify__toast")).to_contain_text(["Kernels were restarted"])
    susan.look_around("idle-given-back")
    assert "had been idle for" in (susan.home / NOTE).read_text()

    # The kernel continues without GPU and variables; no message reports a crash.
    susan.run_cell(1)
    expect(susan.cell(1).locator(".jp-OutputArea-output")).to_contain_text("GPU none False")
    expect(susan.page.locator(".jp-Dialog")).to_have_count(0)
    chip.click()
    expect(asked).to_contain_text("restarted without GPU, not by an error")
    expect(asked).to_contain_text(NOTE)
    assert (asked.locator("a").get_attribute("href") or "").endswith("/hub/home")
    susan.look("idle-afterwards")


def _from_now_on(workstation: RunningWorkstation, key: str, seconds: float) -> None:
    """Set an idle timeout of the site, so that no step happens too early."""
    setting = {"key": f"idle_benches.{key}", "value": seconds}
    body = {"settings": [setting], "reason": "the story has come so far"}
    answer = workstation.scheduler.post("/config/set", json=body)
    assert answer.status_code == 200, answer.text
