"""Further flows: scripts, cancel, reload, crashes, keyboard only, dark theme, the page."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nbformat import v4, writes
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

WAITS = """\
import sys
import time
from benchpool import checkpoint

print("arguments", sys.argv[1:], flush=True)
while not checkpoint.should_stop():
    time.sleep(0.05)
print("stopping", flush=True)
raise SystemExit(3)
"""
SAVES_EARLY = """\
import os
import time
from pathlib import Path
from benchpool import checkpoint

attempt = os.environ["BENCHPOOL_ATTEMPT"]
checkpoint.progress(*((0.63, "step 630") if attempt == "2" else (0.4, "step 400")))
if attempt == "1":
    with checkpoint.commit(400) as folder:
        (folder / "step").write_text("400")
while not checkpoint.should_stop():
    time.sleep(0.05)
    if Path(GO_ON).exists():
        checkpoint.progress(0.7, "step 700")
raise SystemExit(3)
"""
QUICK = """\
import os
from pathlib import Path

folder = Path(os.environ["BENCHPOOL_OUTPUT_DIR"])
(folder / "answer.txt").write_text("forty-two")
print("wrote the answer", flush=True)
"""


@pytest.fixture(scope="module")
def joe(person: Callable[..., Person], workstation: RunningWorkstation) -> Iterator[Person]:
    """Yield joe with a server without GPUs, for all flows of this file."""
    one = person("joe")
    (one.home / "waits.py").write_text(WAITS)
    (one.home / "quick.py").write_text(QUICK)
    one.log_in()
    if workstation.servers("joe"):
        workstation.stop_server("joe")
    one.start_server(0)
    one.open_panel()
    yield one
    workstation.stop_server("joe")


def test_script_is_sent_from_file_browser_and_cancelled(joe: Person) -> None:
    joe.open_file_dialog("waits.py")
    joe.dialog.get_by_test_id("benchpool-arguments").fill("--epochs 3 'two words'")
    joe.choose_gpus(1)
    joe.send()
    joe.expect_state("waits", "running")
    details = joe.open_row("waits")
    expect(details).to_contain_text("arguments ['--epochs', '3', 'two words']")
    joe.cancel("waits")
    expect(details).to_contain_text("stopping")


def test_result_files_open_from_job_row(joe: Person) -> None:
    joe.send_file("quick.py", gpus=1)
    joe.expect_state("quick", "succeeded")
    details = joe.open_row("quick")
    details.get_by_test_id("benchpool-result-file").filter(has_text="answer.txt").click()
    expect(joe.page.locator(".jp-FileEditor:visible")).to_contain_text("forty-two")
    used = details.get_by_test_id("benchpool-usage")
    expect(used).to_contain_text("too short for advice")
    used.scroll_into_view_if_needed()
    joe.look("note-of-a-job")


def test_job_link_is_copied_and_runs_are_compared(joe: Person) -> None:
    (joe.home / "tuned.py").write_text("print('lr', 0.1)\n")
    joe.send_file("tuned.py", gpus=1)
    joe.expect_state("tuned", "succeeded")
    (joe.home / "tuned.py").write_text("print('lr', 0.01)\n")
    joe.send_file("tuned.py", gpus=2)
    joe.expect_state("tuned", "succeeded")
    details = joe.open_row("tuned")
    joe.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    details.get_by_role("button", name="Copy link to tuned").click()
    expect(details.get_by_text("copied", exact=True)).to_be_visible()
    address = joe.page.evaluate("navigator.clipboard.readText()")
    with joe.page.expect_popup() as opened:
        details.get_by_test_id("benchpool-compare").click()
    page = opened.value
    expect(page.locator(".answer")).to_have_text(
        "They were sent with different GPUs, file tuned.py and 2 lines of code."
    )
    page.goto(address)
    expect(page.locator("h1")).to_have_text("tuned")
    page.close()


def test_job_is_paused_and_resumed(joe: Person) -> None:
    joe.send_file("waits.py", gpus=1)
    joe.expect_state("waits", "running")
    joe.act("waits", "pause")
    joe.expect_state("waits", "paused")
    joe.act("waits", "resume")
    joe.expect_state("waits", "running")
    expect(joe.row("waits")).to_contain_text("attempt 2")
    joe.cancel("waits")


def test_resumed_job_shows_previous_progress(joe: Person) -> None:
    continue_file = joe.home / "go-on"
    (joe.home / "saves_early.py").write_text(SAVES_EARLY.replace("GO_ON", repr(str(continue_file))))
    joe.send_file("saves_early.py", gpus=1)
    row = joe.row("saves_early").locator(".bp-Row-second")
    for done in ("40 % step 400", "63 % step 630"):  # the second attempt saves nothing
        expect(row).to_contain_text(done)
        joe.act("saves_early", "pause")
        joe.expect_state("saves_early", "paused")
        joe.act("saves_early", "resume")
        joe.expect_state("saves_early", "running")
    progress = "40 % step 400, 63 % in an earlier attempt"
    expect(row).to_contain_text(progress)
    page = joe.page.context.new_page()
    page.goto(f"{joe.url}/services/benchpool/jobs/{joe.id_of('saves_early')}")
    expect(page.locator("[data-key=progress]")).to_contain_text("63 % in an earlier attempt")
    continue_file.touch()
    for place in (row, page.locator("[data-key=progress]")):
        expect(place).to_contain_text(re.compile("70 %.*step 700"))
        expect(place).not_to_contain_text("earlier attempt")
    page.close()
    joe.cancel("saves_early")


def test_priority_of_running_job_is_changed_and_reverted(joe: Person) -> None:
    joe.send_file("waits.py", gpus=1)
    joe.expect_state("waits", "running")
    details = joe.open_row("waits")
    expect(details).to_contain_text("priority 50")
    joe.act("waits", "change")
    dialog = joe.page.get_by_role("dialog", name="Change “waits”")
    expect(dialog.get_by_label("Priority")).to_be_focused()
    expect(dialog.get_by_label("Workers")).to_be_disabled()
    expect(dialog).to_contain_text("The job runs with exactly 1 worker. Pause it first.")
    joe.page.keyboard.type("80")
    joe.page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(details).to_contain_text("priority 80")
    toast = joe.page.locator(".Toastify__toast", has_text="“waits” has new settings: priority 80.")
    toast.get_by_role("button", name="Undo").click()
    expect(details).to_contain_text("priority 50")
    joe.cancel("waits")


def test_page_reload_shows_running_job(joe: Person) -> None:
    joe.send_file("waits.py", gpus=1)
    joe.expect_state("waits", "running")
    joe.page.reload()
    joe.wait_for_lab()
    joe.open_panel()
    joe.expect_state("waits", "running")
    expect(joe.open_row("waits")).to_contain_text("arguments [")
    joe.cancel("waits")


def test_failed_cell_is_opened_corrected_and_resent(joe: Person) -> None:
    cells = ["rate = 0.5", "notes = {'b': rate}\nprint(notes['a'])"]
    book = v4.new_notebook(cells=[v4.new_code_cell(each) for each in cells])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    (joe.home / "crash.ipynb").write_text(writes(book))
    joe.open_file("crash.ipynb")
    joe.wait_for_kernel()
    joe.select_cell(1)
    joe.press_send_button()
    joe.choose_gpus(2)
    joe.send()
    message = "crash failed in cell 2 with KeyError: 'a' (line 2)."
    toast = joe.page.locator(".Toastify__toast", has_text=message)
    expect(toast).to_be_visible()
    joe.select_cell(0)
    toast.get_by_role("button", name="Open at the cell").click()
    expect(joe.cell(1)).to_have_class(re.compile("jp-mod-active"))
    joe.open_panel()
    details = joe.open_row("crash")
    expect(details).to_contain_text(message)
    joe.look("failed-notebook")
    details.get_by_test_id("benchpool-fix").click()
    again = joe.page.locator(".Toastify__toast", has_text="Correct cell 2, line 2, then send")
    expect(again).to_be_visible()
    expect(joe.cell(1).locator(".cm-focused")).to_have_count(1)
    # The cursor is in the line that failed, so typing edits that line.
    joe.page.keyboard.press("End")
    for _ in range(4):
        joe.page.keyboard.press("ArrowLeft")
    joe.page.keyboard.press("Delete")
    joe.page.keyboard.type("b")
    joe.look("failed-notebook-fix")
    again.get_by_role("button", name="Send again…").click()
    expect(joe.dialog.get_by_test_id("benchpool-gpus")).to_have_value("2")
    expect(joe.dialog).to_contain_text("cell 1 (needed before), then cell 2")
    joe.send()
    joe.expect_state("crash", "succeeded")
    fold = joe.open_row("crash").get_by_test_id("benchpool-sent-code")
    fold.locator("summary").click()
    expect(fold).to_contain_text("crash.ipynb as saved has the same code.")
    expect(fold).to_contain_text("print(notes['b'])")
    joe.page.get_by_role("button", name="Show 1 sent earlier as crash").click()
    earlier = joe.page.locator(".bp-Row", has_text="failed in cell 2").filter(has_text="crash")
    earlier.locator(".bp-Row-main").click()
    fold = earlier.get_by_test_id("benchpool-sent-code")
    fold.locator("summary").click()
    changes = fold.get_by_test_id("benchpool-difference")
    expect(changes).to_contain_text("-print(notes['a'])")
    expect(changes).to_contain_text("+print(notes['b'])")
    joe.look("sent-code")


def scheduler_pid(state: Path) -> int:
    """Return the process ID of the scheduler of a state folder."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if (
            b"benchpool_scheduler.app" in command
            and f"BENCHPOOL_STATE={state}".encode() in environment
        ):
            return int(entry.name)
    raise AssertionError(f"no scheduler runs for {state}")


def test_jobs_survive_scheduler_kill(joe: Person, workstation: RunningWorkstation) -> None:
    joe.send_file("waits.py", gpus=1)
    joe.expect_state("waits", "running")
    first = scheduler_pid(workstation.state)
    os.kill(first, signal.SIGKILL)
    expect(joe.page.get_by_test_id("benchpool-degraded")).to_be_visible()
    expect(joe.page.get_by_test_id("benchpool-degraded")).to_have_count(0)
    assert scheduler_pid(workstation.state) != first
    joe.expect_state("waits", "running")
    expect(joe.row("waits")).not_to_contain_text("attempt 2")
    joe.cancel("waits")
    expect(joe.open_row("waits")).to_contain_text("stopping")


def test_keyboard_alone_is_sufficient(joe: Person) -> None:
    notebook = joe.home / "keys.ipynb"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    cell = v4.new_code_cell("print('by keyboard')")
    notebook.write_text(writes(v4.new_notebook(metadata={"kernelspec": kernel}, cells=[cell])))
    joe.open_file("keys.ipynb")
    joe.wait_for_kernel()
    joe.page.keyboard.press("Escape")
    joe.page.keyboard.press("Control+Shift+Enter")
    expect(joe.dialog).to_be_visible()
    focused = joe.page.locator(":focus")
    expect(focused).to_have_attribute("data-testid", "benchpool-gpus")
    expect(joe.dialog.get_by_test_id("benchpool-send")).to_be_enabled()
    joe.page.keyboard.press("Enter")
    expect(joe.dialog).to_have_count(0)
    expect(joe.badge(0)).to_have_attribute("data-state", "succeeded")
    joe.badge(0).focus()
    joe.page.keyboard.press("Enter")
    expect(joe.row("keys").get_by_test_id("benchpool-details")).to_be_visible()
    expect(joe.row("keys")).to_contain_text("by keyboard")


def test_badge_survives_reload_and_kernel_shutdown(joe: Person) -> None:
    joe.page.keyboard.press("Control+s")
    joe.open_file("keys.ipynb")
    joe.wait_for_kernel()
    expect(joe.badge(0)).to_have_attribute("data-state", "succeeded")
    joe.page.locator(".jp-NotebookPanel:visible .jp-Notebook-cell").first.click()
    joe.page.get_by_text("Kernel", exact=True).first.click()
    joe.page.locator("[data-command='kernelmenu:shutdown']").click()
    expect(joe.badge(0)).to_have_attribute("data-state", "succeeded")


@pytest.fixture
def jemma_in_the_dark(
    person: Callable[..., Person], workstation: RunningWorkstation
) -> Iterator[Person]:
    """Yield jemma with a server without GPUs and JupyterLab's dark theme."""
    jemma = person("jemma", color_scheme="dark")
    settings = jemma.home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True, exist_ok=True)
    theme = settings / "themes.jupyterlab-settings"
    theme.write_text('{"theme": "JupyterLab Dark"}')
    (jemma.home / "quick.py").write_text(QUICK)
    jemma.log_in()
    jemma.start_server(0)
    jemma.open_panel()
    yield jemma
    theme.unlink()
    workstation.stop_server("jemma")


def test_dark_theme_is_readable(jemma_in_the_dark: Person) -> None:
    jemma = jemma_in_the_dark
    jemma.send_file("quick.py", gpus=1)
    jemma.expect_state("quick", "succeeded")
    jemma.open_row("quick")
    expect(jemma.page.locator("body[data-jp-theme-light=false]")).to_have_count(1)
    for place in (".bp-Row-name", ".bp-State-word", ".bp-Row-second"):
        assert contrast(jemma, jemma.row("quick").locator(place).first.element_handle()) >= 4.5, (
            place
        )
    jemma.look("dark-panel")


CONTRAST = """
element => {
  const parse = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const channel = value => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  };
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  let behind = element;
  let back = [0, 0, 0, 0];
  while (behind && (back.length === 4 && back[3] === 0)) {
    back = parse(getComputedStyle(behind).backgroundColor);
    behind = behind.parentElement;
  }
  const light = luminance(parse(getComputedStyle(element).color));
  const dark = luminance(back);
  return (Math.max(light, dark) + 0.05) / (Math.min(light, dark) + 0.05);
}
"""


def contrast(person: Person, element: object) -> float:
    """Return the contrast of an element's text to its background (WCAG 2.2, 1.4.3)."""
    return float(person.page.evaluate(CONTRAST, element))


@pytest.fixture
def susan_at_work(
    person: Callable[..., Person], workstation: RunningWorkstation
) -> Iterator[Person]:
    """Yield susan with a server without GPUs and nothing open."""
    susan = person("susan")
    (susan.home / "quick.py").write_text(QUICK)
    susan.log_in()
    susan.start_server(0)
    yield susan
    workstation.stop_server("susan")
    (susan.home / "quick.py").unlink()


def test_job_sent_from_python_shows_live_widget(susan_at_work: Person) -> None:
    susan = susan_at_work
    text = "import benchpool\n\nbenchpool.submit('quick.py', gpus=1)"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    notebook = v4.new_notebook(metadata={"kernelspec": kernel}, cells=[v4.new_code_cell(text)])
    (susan.home / "python.ipynb").write_text(writes(notebook))
    susan.open_file("python.ipynb")
    susan.wait_for_kernel()
    susan.run_cell(0)
    row = susan.cell(0).locator(".jp-OutputArea-output .widget-vbox").first
    expect(row).to_contain_text("succeeded")
    expect(row.locator("textarea")).to_have_value(re.compile("wrote the answer"))
    susan.look("widget")
    row.get_by_role("link", name="open results").click()
    expect(susan.page.locator(".jp-BreadCrumbs")).to_contain_text("benchpool-results")


def test_services_menu_opens_pool_page(joe: Person) -> None:
    joe.page.goto(f"{joe.url}/hub/home")
    joe.page.get_by_role("button", name=re.compile("Services")).click()
    joe.page.get_by_role("link", name="benchpool").click()
    expect(joe.page.get_by_text(re.compile(r"9 GPUs: "))).to_be_visible()
    expect(joe.page.get_by_text(re.compile("simulated", re.I)).first).to_be_visible()
    joe.look("dashboard")
