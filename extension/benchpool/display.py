"""Widget of one job in a notebook. It lives as long as the kernel; the panel is authoritative.

Text of the job is shown in plain labels and a text area, never as HTML. The link to its results is
HTML made here, with only its ID and address.
"""

from __future__ import annotations

import html
import json
import threading
from datetime import UTC, datetime
from typing import Any, Protocol

from benchpool.row_curves import POINTS, CurvePace, curve_line
from benchpool_scheduler.client import discover
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import ENDED, Job, JobMetrics, State
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import count, done, failed_with, pause_words

LOG_LINES = 12
LOG_CHARACTERS = 20_000

_SHAPES: dict[State, str] = {
    State.QUEUED: "◔",
    State.STARTING: "◑",
    State.RUNNING: "●",
    State.PAUSING: "◐",
    State.PAUSED: "‖",
    State.SUCCEEDED: "✔",
    State.FAILED: "✖",
    State.CANCELLED: "⊘",
}

_STYLES = {
    State.SUCCEEDED: "success",
    State.FAILED: "danger",
    State.CANCELLED: "danger",
    State.PAUSING: "warning",
    State.PAUSED: "warning",
}
"""Bar styles of ipywidgets by state."""


class FollowedJob(Protocol):
    """Interface of the job that is shown; implemented by ``JobHandle``."""

    facts: Job

    @property
    def id(self) -> str: ...
    def pause(self) -> object: ...
    def resume(self) -> object: ...
    def cancel(self) -> object: ...


def show(job: FollowedJob) -> None:
    """Display a job: as a live widget if ipywidgets is available, else as text."""
    from IPython.display import display

    try:
        import ipywidgets  # noqa: F401
        from IPython import get_ipython

        live = getattr(get_ipython(), "kernel", None) is not None
    except ImportError:
        live = False
    if not live:
        print(repr(job))
        return
    display(Row(job).widget)


class Row:
    """Widget of one job, with the threads that keep it current until the job ends."""

    def __init__(self, job: FollowedJob, *, follow: bool = True) -> None:
        import ipywidgets as widgets

        self._job = job
        self.title = widgets.Label(style={"font_weight": "600"})
        self.size = widgets.Label()
        self.reason = widgets.Label()
        self.bar = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="160px"))
        self.done = widgets.Label()
        self.curves = widgets.Label()
        self._pace = CurvePace()
        self.results = widgets.HTML()
        self.log = widgets.Textarea(disabled=True, rows=LOG_LINES)
        self.log.layout.width = "100%"
        self.buttons = {
            action: widgets.Button(description=action, tooltip=f"{action} this job")
            for action in ("pause", "resume", "cancel")
        }
        for action, button in self.buttons.items():
            button.on_click(lambda _button, action=action: self._act(action))
        flow = widgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="2px 12px")
        shown = [self.title, self.size, self.bar, self.done, *self.buttons.values(), self.results]
        head = widgets.Box(shown, layout=flow)
        frame = widgets.Layout(
            border="1px solid var(--jp-border-color2)", padding="6px 10px", width="auto"
        )
        self.curves.layout.display = "none"
        parts = [head, self.reason, self.curves, self.log]
        self.widget = widgets.VBox(parts, layout=frame)
        self.show_facts(job.facts)
        if follow:
            for follow_part in (self._follow_state, self._follow_log, self._follow_curves):
                self._start(follow_part)

    def show_facts(self, facts: Job) -> None:
        """Show the given facts."""
        self._job.facts = facts
        self._pace.see(facts)
        gpus = facts.gpus * facts.workers
        attempt = f" · attempt {facts.attempt}" if facts.attempt > 1 else ""
        self.size.value = f"{count(gpus, 'GPU')}{attempt}"
        self._show_reason(_remark(facts))
        progress = facts.progress
        known = None if progress is None else progress.fraction
        fraction = 1.0 if facts.state is State.SUCCEEDED else known
        # Nothing is shown for an unknown progress: 0 % would be a claim.
        for part in (self.bar, self.done):
            part.layout.display = "none" if fraction is None else None
        self.bar.value = fraction or 0.0
        self.bar.bar_style = _STYLES.get(facts.state, "info")
        previous_progress = progress.previous_progress if progress else None
        self.done.value = "" if fraction is None else done(fraction, previous_progress)
        self.log.layout.display = None if self.log.value else "none"
        ran = facts.ended is not None and facts.started is not None
        self.results.value = results_link(facts.id, facts.url) if ran else ""
        self.results.layout.display = None if ran else "none"
        for action, button in self.buttons.items():
            button.layout.display = None if action in facts.actions else "none"
        # Last, so that a reader waiting for a state finds everything that belongs to it.
        self.title.value = f"{_SHAPES[facts.state]} {facts.state} · {facts.name}"

    def add_log(self, text: str) -> None:
        """Add text to the shown log; only its end is kept."""
        self.log.value = (self.log.value + text)[-LOG_CHARACTERS:]
        self.log.rows = min(LOG_LINES, self.log.value.count("\n") + 1)
        self.log.layout.display = None if self.log.value else "none"

    def _show_reason(self, text: str) -> None:
        self.reason.value = text
        self.reason.layout.display = None if text else "none"

    def _act(self, action: str) -> None:
        try:
            getattr(self._job, action)()
        except BenchpoolError as refused:
            self._show_reason(refused.message)
        else:
            self.show_facts(self._job.facts)

    def _start(self, follow: Any) -> None:
        threading.Thread(target=self._guarded, args=(follow,), daemon=True).start()

    def _guarded(self, follow: Any) -> None:
        import os

        try:
            # Threads that stream do not share connections.
            with Client(discover(os.environ), patience_s=60.0) as pool:
                follow(pool)
        except BenchpoolError as lost:
            self._show_reason(lost.message)
            self._pace.end()

    def _follow_state(self, pool: Client) -> None:
        for event in pool.events():
            if event.kind in ("open", "reset"):
                self.show_facts(pool.job(self._job.id).job)
            elif isinstance(event.data, Job) and event.data.id == self._job.id:
                self.show_facts(event.data)
            if self._job.facts.state in ENDED:
                return

    def _follow_curves(self, pool: Client) -> None:
        for _ in self._pace.turns():
            self.show_curves(pool.job_metrics(self._job.id, points=POINTS))

    def show_curves(self, answer: JobMetrics) -> None:
        """Show the metrics that the job has reported."""
        self.curves.value = curve_line(answer)
        self.curves.layout.display = None if self.curves.value else "none"

    def _follow_log(self, pool: Client) -> None:
        attempt = 0
        while True:
            for piece in pool.follow_log(self._job.id):
                attempt = self._attempt(attempt, piece.attempt)
                self.add_log(piece.text)
            facts = pool.job(self._job.id).job
            if facts.state in ENDED and facts.attempt <= max(attempt, 1):
                return
            if not self._next_attempt(pool, attempt):
                return

    def _attempt(self, before: int, now: int) -> int:
        if before and now != before:
            self.add_log(f"\n── attempt {now} ──\n")
        return now

    def _next_attempt(self, pool: Client, after: int) -> bool:
        """Wait for a later attempt; return False if the job ends without one."""
        for event in pool.events():
            facts = pool.job(self._job.id).job if event.kind in ("open", "reset") else event.data
            if isinstance(facts, Job) and facts.id == self._job.id:
                if facts.attempt > after and facts.started is not None:
                    return True
                if facts.state in ENDED:
                    return False
        return False


def results_link(job: str, page: str) -> str:
    """Return the link to a job's results, opened in JupyterLab or on its page elsewhere.

    >>> "benchpool:open-result" in results_link("3fk2", "/services/benchpool/jobs/3fk2")
    True
    """
    command = 'data-commandlinker-command="benchpool:open-result" data-commandlinker-args="'
    return (
        f'<a href="{html.escape(page)}" target="_blank" rel="noopener noreferrer" '
        'style="color: var(--jp-content-link-color); text-decoration: underline" '
        f'{command}{html.escape(json.dumps({"id": job}))}">open results</a>'
    )


def _remark(facts: Job) -> str:
    pause = pause_words(facts.pause, datetime.now(UTC))
    return "; ".join(part for part in (pause, _beside(facts)) if part)


def _beside(facts: Job) -> str:
    if facts.reason is not None and (facts.state not in ENDED or facts.state is State.FAILED):
        return facts.reason.text
    if facts.state is State.FAILED and facts.exit_code is not None:
        return failed_with(facts.exit_code)
    return (facts.progress.text or "") if facts.progress else ""
