"""Stored size, first paint and live delay of curves: 1,000,000 reported values of 20 names.

``python benchmarks/curves.py [--values 1000000] [--names 20] [--live 60]``: a real hub, scheduler,
JupyterLab and Chromium.

A job reports with ``benchpool.log``. For the first part of the run its writer has a higher rate
limit (500 reports a second instead of 20), so that all values reach the scheduler. Then the
usual limit applies, and delays are measured. *Stored* is the size of the job's curve file, read 50
times a second. *First paint* is Chromium's first contentful paint of the job's page with an empty
browser cache, from the start of the navigation, through the Hub's proxy. *Live delay*: the value of
one name is the time of its report. A report counts as shown when the place shows it or a later one.
All places are measured at the same time. *Processor time* is that of the scheduler while the job
reports: with the panel, and with 20 widgets that follow the job over the Hub's proxy.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import checkout  # noqa: F401
import msgspec
import psutil
from playwright.sync_api import Page
from tables import Figure, show

from benchpool.display import Row
from benchpool.handles import JobHandle, client
from benchpool_support.people import Person, screen
from benchpool_support.waiting import processor_seconds, until
from benchpool_support.workstation import COMMAND, RunningWorkstation, start

WATCHERS = 20
CYCLE_S = 100.0
"""Reports carry their time modulo this many seconds, so that four digits show 10 ms."""
EVERY_S = 0.05
"""Interval of reports at the writer's usual rate limit, in seconds."""
CLOCK = "clock"
CONFIGURATION = """\
version: 1
projects: [{name: ann, quota: 2, members: [ann]}]
"""
SCRIPT = """\
import math, time
from pathlib import Path
import benchpool
from benchpool.metrics import reporting

here = Path({home!r})
usual, reporting.RATE = reporting.RATE, 500.0
began = time.monotonic()
step = 0

def report():
    global step
    step += 1
    loss = 2 / (1 + step / 4000) + 0.05 * math.sin(step / 3)
    more = {{f"train/loss-{{number}}": loss * number for number in range(1, {names})}}
    benchpool.log({{"clock": time.time() % {cycle}, **more}}, step=step)

while step * {names} < {values}:
    report()
    time.sleep(max(0.0, began + step / 400 - time.monotonic()))
reporting.RATE = usual
reporting._writer._room = 0.0
(here / "filled").touch()
while not (here / "stop").exists():
    report()
    time.sleep(0.01)
"""
WATCH = """selector => {
  window.seen = [];
  let before = null;
  const look = () => {
    const text = document.querySelector(selector)?.textContent ?? null;
    if (text !== before) window.seen.push([Date.now() / 1000, text]);
    before = text;
  };
  new MutationObserver(look).observe(document.documentElement,
    { subtree: true, childList: true, characterData: true });
  look();
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"
ON_PAGE = f"[data-key='curve-{CLOCK}'] p.quiet"
IN_PANEL = f"[data-testid='benchpool-curves'] [data-metric='{CLOCK}'] figcaption span"

Shown = list[tuple[float, float]]
"""When a value appeared, in seconds since the epoch, and the value."""


def delays(shown: Shown) -> tuple[float, ...]:
    """Return the seconds from each report to the display of it or of a later one.

    >>> [round(it, 2) for it in delays([(10.0, 9.5), (11.0, 10.6)])][:3]
    [1.45, 1.4, 1.35]
    """
    found: list[float] = []
    for (_, before), (at, value) in pairwise(shown):
        for number in range(1, round((value - before) % CYCLE_S / EVERY_S) + 1):
            found.append((at - before - number * EVERY_S) % CYCLE_S)
    return tuple(found)


class StoredSize:
    """Size of the only curve file of a pool, read by a thread until the program ends."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "scheduler" / "curves"
        self.peak = 0
        threading.Thread(target=self._run, daemon=True).start()

    def now(self) -> int:
        """Return the present size in bytes, 0 without a file."""
        return sum(it.stat().st_size for it in self._folder.glob("*.jsonl"))

    def _run(self) -> None:
        while True:
            self.peak = max(self.peak, self.now())
            time.sleep(0.02)


def watched(page: Page) -> Shown:
    """Return what a page has shown since it is watched."""
    seen: Sequence[tuple[float, str | None]] = page.evaluate("window.seen")
    return [(at, float(text.split()[0])) for at, text in seen if text and text[0].isdecimal()]


@contextmanager
def terminal(job: str, seen: Shown) -> Iterator[None]:
    """Collect what ``benchpool metrics -f`` shows meanwhile."""
    argv = [*COMMAND, "metrics", "-f", job, "--name", CLOCK, "--json"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE)

    def read() -> None:
        for line in process.stdout or ():
            seen.append((time.time(), msgspec.json.decode(line)["value"]))

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        process.terminate()
        thread.join()
        process.wait()


def widget(job: JobHandle, seen: Shown) -> None:
    """Collect what the widget of a job in a notebook shows from now on."""

    def changed(change: dict[str, str]) -> None:
        words = change["new"].split()
        if words:
            seen.append((time.time(), float(words[1])))

    Row(job).curves.observe(changed, "value")


def live(person: Person, job: str, seconds: float) -> list[Figure]:
    """Return the live delay of each place."""
    in_terminal: Shown = []
    in_widget: Shown = []
    page = person.page.context.new_page()
    page.goto(f"{person.url}/services/benchpool/jobs/{job}")
    page.wait_for_selector(ON_PAGE)
    page.wait_for_selector("#live[data-on]")
    person.open_row("train")
    person.page.wait_for_selector(IN_PANEL)
    with terminal(job, in_terminal):
        widget(JobHandle(client().job(job).job), in_widget)
        until(lambda: in_terminal and in_widget, "terminal and widget follow")
        page.evaluate(WATCH, ON_PAGE)
        person.page.evaluate(WATCH, IN_PANEL)
        time.sleep(seconds)
        places = {
            "job's page": watched(page),
            "panel": watched(person.page),
            "widget": list(in_widget),
            "`benchpool metrics -f`": list(in_terminal),
        }
    page.close()
    return [Figure(f"live delay, {name}", "s", delays(it[1:])) for name, it in places.items()]


def load(up: RunningWorkstation, job: str, seconds: float) -> Iterator[Figure]:
    """Yield the scheduler's processor time with the panel alone, and with many widgets."""
    scheduler = [psutil.Process(up.scheduler_pid())]
    for watchers in (0, WATCHERS):
        for _ in range(watchers):
            Row(JobHandle(client().job(job).job))
        time.sleep(3.0)
        before, began = processor_seconds(scheduler), time.monotonic()
        time.sleep(seconds)
        used = sum(processor_seconds(scheduler).values()) - sum(before.values())
        share = 100 * used / (time.monotonic() - began)
        who = f"the panel and {watchers} widgets" if watchers else "the panel"
        yield Figure(f"scheduler's processor time, {who}", "% of a core", (share,))


def paints(person: Person, job: str, runs: int) -> Figure:
    """Return the time of the first contentful paint of the job's page."""
    state = person.page.context.storage_state()
    browser, found = person.page.context.browser, []
    assert browser is not None
    for _ in range(runs):
        context = browser.new_context(storage_state=state, viewport={"width": 1440, "height": 900})
        page = context.new_page()
        page.goto(f"{person.url}/services/benchpool/jobs/{job}")
        found.append(float(until(lambda page=page: page.evaluate(PAINT), holds=lambda it: it)))
        context.close()
    return Figure("first contentful paint of the job's page", "ms", tuple(found))


def measure(up: RunningWorkstation, person: Person, given: argparse.Namespace) -> list[Figure]:
    """Run the job and return all figures."""
    size, began = StoredSize(up.state), time.monotonic()
    person.send_file("train.py", gpus=1)
    person.expect_state("train", "running")
    job = person.id_of("train")
    home = person.home
    until((home / "filled").exists, "all values are reported", given.values / 1000 + 600)
    print(f"{given.values:,} values reported in {time.monotonic() - began:.0f} s", flush=True)
    os.environ["BENCHPOOL_URL"] = f"{up.ready['url'].rstrip('/')}/services/benchpool"
    os.environ["JUPYTERHUB_API_TOKEN"] = up.token_of("ann")
    figures = [paints(person, job, given.paints), *live(person, job, given.live)]
    figures += load(up, job, given.live / 4)
    (home / "stop").touch()
    up.wait_job(job, "succeeded")
    end = until(size.now, "the file no longer changes", holds=_Settled(5.0).check)
    figures[:0] = [
        Figure("stored, peak", "MB", (size.peak / 1e6,)),
        Figure("stored, after the end of the job", "MB", (end / 1e6,)),
    ]
    return figures


class _Settled:
    """Check that a value has not changed for some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._value, self._since = seconds, -1, 0.0

    def check(self, value: int) -> bool:
        now = time.monotonic()
        if value != self._value:
            self._value, self._since = value, now
        return now - self._since >= self._seconds


def main() -> int:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--values", type=int, default=1_000_000)
    options.add_argument("--names", type=int, default=20)
    options.add_argument("--live", type=float, default=60.0, help="seconds of the live part")
    options.add_argument("--paints", type=int, default=7)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "benchpool.yaml"
        config.write_text(CONFIGURATION)
        with start(Path(folder) / "state", gpus=2, config=config) as up, screen() as browser:
            home = up.state / "homes" / "ann"
            home.mkdir(parents=True)
            facts = {
                "names": given.names,
                "values": given.values,
                "cycle": CYCLE_S,
                "home": str(home),
            }
            (home / "train.py").write_text(SCRIPT.format(**facts))
            person = Person(browser, up.ready["url"], "ann", up.shared_password, home)
            person.log_in()
            person.start_server(0)
            person.open_panel()
            figures = measure(up, person, given)
            person.leave()
    show(f"Curves of {given.names} names, {given.values:,} reported values", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
