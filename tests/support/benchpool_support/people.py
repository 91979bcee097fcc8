"""Users at the screen: their clicks and what the screen shows, for tests in a real browser.

Every step uses the content of the screen; nothing here calls the scheduler directly.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, TimeoutError, expect, sync_playwright

from benchpool_support.browser import ARGUMENTS, CHROMIUM, PATIENCE_MS

START_MS = 180_000
"""Timeout for a server start, in milliseconds; longer than the Hub's own timeout."""

SIZES = ((1440, 900), (390, 844))
"""Window sizes of screenshots, in pixels: a desktop's and a phone's."""

SETTLES_MS = 600
"""Delay before a screenshot for colours and layout to settle, in milliseconds.

No check depends on it.
"""

PRESSES = 24
"""Maximum number of presses of a key while nothing happens."""

TRACEBACK = re.compile(r"Traceback \(most recent call last\)|^ *(Cell|File) .*line \d+", re.M)
"""Output of a cell that raised. JupyterLab shows it in the same way as standard error."""


@contextmanager
def screen() -> Iterator[Browser]:
    """Run a headless Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """User with a browser context of their own.

    Args:
        browser: The browser; the user gets a fresh context in it.
        url: Address of the Hub.
        name: User name, which is also the name of the user's project.
        password: The shared password.
        home: The user's home folder with the notebooks, if it is on this machine.
        context: Settings of the browser context, e.g. ``color_scheme``.
    """

    def __init__(
        self,
        browser: Browser,
        url: str,
        name: str,
        password: str,
        home: Path = Path(),
        **context: object,
    ) -> None:
        settings = {"viewport": {"width": 1440, "height": 900}, **context}
        self._context = browser.new_context(**settings)  # type: ignore[arg-type]
        self._context.set_default_timeout(PATIENCE_MS)
        self.page: Page = self._context.new_page()
        self.url = url.rstrip("/")
        self.name = name
        self.home = home
        self._password = password

    def leave(self) -> None:
        """Close the window; servers and jobs continue."""
        self._context.close()

    def look(self, name: str, page: Page | None = None) -> None:
        """Save a screenshot of the window, or of another page, if a folder for pictures is set."""
        folder = os.environ.get("BENCHPOOL_SCREENSHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (page or self.page).screenshot(path=Path(folder) / f"{name}.png")

    def look_around(self, name: str, *, full: bool = False, keeping: Locator | None = None) -> None:
        """Save screenshots in light and dark, for desktop and phone, if a folder is set.

        Args:
            full: Include the whole page, beyond the window.
            keeping: Notification to keep open by holding the mouse on it.
        """
        folder = os.environ.get("BENCHPOOL_SCREENSHOTS")
        if not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        before = self.page.viewport_size
        for scheme in ("light", "dark"):
            self.page.emulate_media(color_scheme=scheme)
            for width, height in SIZES:
                self.page.set_viewport_size({"width": width, "height": height})
                if keeping is not None:
                    with suppress(TimeoutError):
                        keeping.hover(timeout=SETTLES_MS)
                self.page.wait_for_timeout(SETTLES_MS)
                expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)
                path = Path(folder) / f"{name}-{scheme}-{width}.png"
                self.page.screenshot(path=path, full_page=full)
        self.page.emulate_media(color_scheme="light")
        if before is not None:
            self.page.set_viewport_size(before)

    def follow_colours_of_the_system(self) -> None:
        """Let JupyterLab follow the browser's preference for light or dark."""
        settings = self.home / ".jupyter/lab/user-settings/@jupyterlab/apputils-extension"
        settings.mkdir(parents=True, exist_ok=True)
        (settings / "themes.jupyterlab-settings").write_text('{"adaptive-theme": true}')

    def fold_file_browser(self) -> None:
        """Fold away the side bar on the left."""
        shown = self.page.locator(".jp-SideBar.jp-mod-left .lm-TabBar-tab.lm-mod-current")
        if shown.count():
            shown.click()

    # ------------------------------------------------------------------ Hub

    def log_in(self) -> None:
        """Log in on the Hub's page with the shared password."""
        self.page.goto(f"{self.url}/hub/login")
        self.page.fill("#username_input", self.name)
        self.page.fill("#password_input", self._password)
        self.page.click("#login_submit")
        self.page.wait_for_url(re.compile(r"/hub/(home|spawn)|/user/"))

    def open_start_form(self) -> None:
        """Open the start form for a server."""
        self.page.goto(f"{self.url}/hub/spawn/{self.name}")
        expect(self.page.locator("input[name=gpus]").first).to_be_visible()

    def start_server(self, gpus: int) -> None:
        """Choose a number of GPUs, start the server, and wait for JupyterLab."""
        self.open_start_form()
        self.page.locator(f"input[name=gpus][value='{gpus}']").check()
        self.page.locator("input[type=submit], button[type=submit]").last.click()
        self.page.wait_for_url(re.compile(rf"/user/{self.name}/"), timeout=START_MS)
        self.wait_for_lab()

    # ------------------------------------------------------------------ JupyterLab

    def wait_for_lab(self) -> None:
        """Wait until JupyterLab is drawn."""
        expect(self.page.locator("#jp-main-dock-panel")).to_be_visible()
        expect(self.page.locator("#jupyterlab-splash")).to_have_count(0)

    def open_file(self, name: str) -> None:
        """Open a file of the home folder in JupyterLab by its link."""
        self.page.goto(f"{self.url}/user/{self.name}/lab/tree/{name}")
        self.wait_for_lab()
        # JupyterLab restores the notebooks that were open before, and any may come to the front.
        tab = self.page.locator("#jp-main-dock-panel .lm-TabBar-tab", has_text=name)
        tab.click()
        expect(tab).to_have_class(re.compile("lm-mod-current"))

    @property
    def notebook(self) -> Locator:
        """The notebook in front."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def cell(self, number: int) -> Locator:
        """One cell of the notebook in front, counted from 0."""
        return self.notebook.locator(".jp-Cell").nth(number)

    def scroll_to(self, what: Locator) -> None:
        """Scroll the front notebook down until an element is visible; cells are rendered late."""
        wait_ms = PATIENCE_MS / PRESSES
        for _ in range(PRESSES):
            with suppress(AssertionError, TimeoutError):
                what.scroll_into_view_if_needed(timeout=wait_ms)
                expect(what).to_be_in_viewport(timeout=wait_ms)
                return
            with suppress(TimeoutError):
                self.notebook.locator(".jp-WindowedPanel-outer").hover(timeout=wait_ms)
                self.page.mouse.wheel(0, 600)
        expect(what).to_be_in_viewport()

    def wait_for_kernel(self) -> None:
        """Wait until the status bar shows the kernel as connected and idle."""
        bar = self.page.locator("#jp-main-statusbar")
        expect(bar).to_contain_text("| Idle")
        idle = self.notebook.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]")
        expect(idle).to_be_visible()

    def run_cell(self, number: int, *, raises: bool = False) -> None:
        """Run one cell and wait for its execution number.

        Raises:
            AssertionError: The cell raised, or did not although ``raises`` is set; the message is
                its output.
        """
        prompt = self.cell(number).locator(".jp-InputPrompt")
        before = prompt.inner_text()
        for _ in range(PRESSES):
            self.select_cell(number)
            self.page.keyboard.press("Control+Enter")
            # JupyterLab accepts keys only after its shortcuts are loaded, and loses cells that are
            # run before the kernel is connected. The screen shows neither.
            with suppress(AssertionError):
                expect(prompt).not_to_have_text(before, timeout=PATIENCE_MS / PRESSES)
            expect(prompt).not_to_have_text("[*]:")
            if re.search(r"\d", prompt.inner_text()) and prompt.inner_text() != before:
                break
        expect(prompt).to_have_text(re.compile(r"\[\d+\]"))
        outputs = self.cell(number).locator(".jp-OutputArea-output")
        if raises:
            expect(outputs.first).to_contain_text(TRACEBACK)
            return
        output = "\n".join(outputs.all_inner_texts())
        assert not TRACEBACK.search(output), output

    def show_value(self, number: int, name: str) -> str:
        """Add a line with a name to a cell, run the cell, and return the displayed value."""
        self.cell(number).locator(".cm-content").click()
        self.page.keyboard.press("Control+End")
        self.page.keyboard.type(f"\n{name}")
        self.run_cell(number)
        return self.cell(number).locator(".jp-OutputArea-executeResult pre").inner_text()

    def select_cell(self, number: int) -> None:
        """Select one cell in command mode."""
        self.cell(number).locator(".jp-InputArea-editor").click()
        self.page.keyboard.press("Escape")
        expect(self.cell(number)).to_have_class(re.compile("jp-mod-active"))
        expect(self.notebook.locator(".jp-Notebook.jp-mod-commandMode")).to_be_visible()

    # ------------------------------------------------------------------ sending

    @property
    def dialog(self) -> Locator:
        """The dialog "Send to training"."""
        return self.page.get_by_test_id("benchpool-send-dialog")

    def press_send_button(self) -> None:
        """Press the notebook's toolbar button and wait for the dialog."""
        self.notebook.locator("[data-jp-item-name='benchpool-send'] >> visible=true").click()
        expect(self.dialog).to_be_visible()

    def choose_gpus(self, gpus: int) -> None:
        """Set the number of GPUs in the dialog and wait for its text about the start."""
        self.dialog.get_by_test_id("benchpool-gpus").fill(str(gpus))
        expect(self.dialog.get_by_test_id("benchpool-send")).to_be_enabled()

    def choose_workers(self, workers: int) -> None:
        """Unfold the advanced fields and set the number of workers."""
        field = self.dialog.get_by_test_id("benchpool-workers")
        if not field.is_visible():
            self.dialog.locator(".bp-More > summary").click()
        field.fill(str(workers))

    def send(self) -> None:
        """Press Enter in the dialog and wait until it is closed."""
        expect(self.dialog.get_by_test_id("benchpool-send")).to_be_enabled()
        self.dialog.get_by_test_id("benchpool-gpus").press("Enter")
        expect(self.dialog).to_have_count(0)

    def open_file_dialog(self, name: str) -> None:
        """Choose "Send to Training…" in the file browser's menu of a file of the home folder."""
        item = self.page.locator(f".jp-DirListing-item[title^='Name: {name}']")
        command = self.page.locator(".lm-Menu-item[data-command='benchpool:send-file']")
        wait_ms = PATIENCE_MS / PRESSES
        for _ in range(PRESSES):
            # After a reload JupyterLab returns to its last folder after some delay. If the folder
            # changes while the mouse moves, another file is under the mouse.
            with suppress(AssertionError, TimeoutError):
                self.page.locator(".jp-BreadCrumbs-home").click(timeout=wait_ms)
                item.click(timeout=wait_ms)
                expect(item).to_have_class(re.compile("jp-mod-selected"), timeout=wait_ms)
                item.click(button="right", timeout=wait_ms)
                command.click(timeout=wait_ms)
                expect(self.dialog).to_contain_text(name, timeout=wait_ms)
                return
            self.page.keyboard.press("Escape")
        raise AssertionError(f"no dialog opens for {name}")

    def send_file(self, name: str, *, gpus: int) -> None:
        """Send a script from the file browser's menu."""
        self.open_file_dialog(name)
        self.choose_gpus(gpus)
        self.send()

    # ------------------------------------------------------------------ following

    @property
    def panel(self) -> Locator:
        """The side panel with the jobs."""
        return self.page.locator("[aria-label='Training jobs'].lm-Widget >> visible=true").first

    def open_panel(self) -> None:
        """Bring the side panel to the front."""
        if self.panel.count() == 0:
            self.page.get_by_test_id("benchpool-status").click()
        expect(self.panel).to_be_visible()

    def row(self, name: str) -> Locator:
        """The panel's newest row of a job by its name."""
        named = self.page.locator(f".bp-Row-name:text-is('{name}')")
        return self.page.locator(".bp-Row", has=named).first

    def expect_state(self, name: str, state: str) -> None:
        """Wait until the panel shows a job in a state."""
        mark = self.row(name).get_by_test_id("benchpool-state").first
        expect(mark).to_have_text(state)

    def id_of(self, name: str) -> str:
        """Return the ID of a job that the panel shows."""
        return str(self.row(name).get_attribute("data-job-id"))

    def open_job_page(self, job: str) -> Page:
        """Open the page of a job in this window and return it."""
        self.page.goto(f"{self.url}/services/benchpool/jobs/{job}")
        expect(self.page.locator("article.job")).to_be_visible()
        return self.page

    def close_notifications(self) -> None:
        """Close the notifications at the edge of the window, until none is left."""
        shown = self.page.locator(".Toastify__toast")
        for _ in range(PRESSES):
            with suppress(AssertionError, TimeoutError):
                for each in shown.get_by_role("button", name="Hide notification").all():
                    each.click(timeout=PATIENCE_MS / PRESSES)
                expect(shown).to_have_count(0, timeout=PATIENCE_MS / PRESSES)
                return
        expect(shown).to_have_count(0)

    def open_row(self, name: str) -> Locator:
        """Unfold a job in the panel and return its details."""
        row = self.row(name)
        button = row.locator(".bp-Row-main")
        if button.get_attribute("aria-expanded") != "true":
            button.click()
        details = row.get_by_test_id("benchpool-details")
        expect(details).to_be_visible()
        return details

    def load_value(self, details: Locator, name: str) -> int:
        """Press *Load into notebook* at a value of a job; return the number of the new cell."""
        cells = self.notebook.locator(".jp-Cell")
        before = cells.count()
        details.get_by_role("button", name=f"Load {name} into notebook").click()
        expect(cells).to_have_count(before + 1)
        active = "cells => cells.findIndex(each => each.classList.contains('jp-mod-active'))"
        return int(cells.evaluate_all(active))

    def open_executed_copy(self, details: Locator) -> None:
        """Open the executed copy of a job and wait until it is in front and shows its cells.

        Before that, another notebook is in front and could be mistaken for it.
        """
        details.get_by_test_id("benchpool-open-result").click()
        front = self.page.locator("#jp-main-dock-panel .lm-TabBar-tab.lm-mod-current")
        expect(front).to_have_text(re.compile(r"-[0-9a-f]{8}\.ipynb"))
        expect(self.cell(0)).to_be_visible()

    def badge(self, cell: int) -> Locator:
        """The badge of a cell."""
        return self.cell(cell).get_by_test_id("benchpool-badge")

    def act(self, name: str, action: str) -> None:
        """Press a button of a row: pause, resume or again."""
        self.row(name).locator(f"[data-action='{action}']").click()

    def cancel(self, name: str) -> None:
        """Cancel a job that has run, confirm the loss of work, and wait until it has ended."""
        self.act(name, "cancel")
        self.page.get_by_role("button", name="Cancel the job").click()
        self.expect_state(name, "cancelled")
