"""A job in a notebook: a small live row. The panel is the truth; this lives as long as the kernel.

Texts of the job go into plain labels and a text area, never into HTML.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol

from benchpool_scheduler.client import discover
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import ENDED, Job, State
from benchpool_scheduler.errors import BenchpoolError
from benchpool_scheduler.phrases import count, failed_with

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


class FollowedJob(Protocol):
    """What is asked of the job that is shown; a ``JobHandle`` has it."""

    facts: Job

    @property
    def id(self) -> str: ...
    def pause(self) -> object: ...
    def resume(self) -> object: ...
    def cancel(self) -> object: ...


def show(job: FollowedJob) -> None:
    """Display a job: live where there are widgets, else as text."""
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
    """The widget of one job, and the threads that keep it current until the job ends."""

    def __init__(self, job: FollowedJob, *, follow: bool = True) -> None:
        import ipywidgets as widgets

        self._job = job
        self.title = widgets.Label()
        self.reason = widgets.Label()
        self.bar = widgets.FloatProgress(min=0.0, max=1.0)
        self.log = widgets.Textarea(disabled=True, rows=LOG_LINES)
        self.log.layout.width = "100%"
        self.buttons = {
            action: widgets.Button(description=action, tooltip=f"{action} this job")
            for action in ("pause", "resume", "cancel")
        }
        for action, button in self.buttons.items():
            button.on_click(lambda _button, action=action: self._act(action))
        head = widgets.HBox([self.title, self.bar, *self.buttons.values()])
        self.widget = widgets.VBox([head, self.reason, self.log])
        self.show_facts(job.facts)
        if follow:
            self._start(self._follow_state)
            self._start(self._follow_log)

    def show_facts(self, facts: Job) -> None:
        """Show these facts."""
        self._job.facts = facts
        gpus = facts.gpus * facts.workers
        self.title.value = (
            f"{_SHAPES[facts.state]} {facts.state}  {facts.name}  "
            f"{count(gpus, 'GPU')} · attempt {facts.attempt}"
        )
        self.reason.value = _remark(facts)
        fraction = facts.progress.fraction if facts.progress else None
        done = facts.state is State.SUCCEEDED
        self.bar.value = 1.0 if done else (fraction or 0.0)
        self.bar.description = f"{self.bar.value:.0%}"
        for action, button in self.buttons.items():
            button.layout.display = None if action in facts.actions else "none"

    def add_log(self, text: str) -> None:
        """Show more of the log; only its end is kept."""
        self.log.value = (self.log.value + text)[-LOG_CHARACTERS:]

    def _act(self, action: str) -> None:
        try:
            getattr(self._job, action)()
        except BenchpoolError as refused:
            self.reason.value = refused.message
        else:
            self.show_facts(self._job.facts)

    def _start(self, follow: Any) -> None:
        threading.Thread(target=self._guarded, args=(follow,), daemon=True).start()

    def _guarded(self, follow: Any) -> None:
        import os

        try:
            # Connections are not shared between threads that stream.
            with Client(discover(os.environ), patience_s=60.0) as pool:
                follow(pool)
        except BenchpoolError as lost:
            self.reason.value = lost.message

    def _follow_state(self, pool: Client) -> None:
        for event in pool.events():
            if event.kind in ("open", "reset"):
                self.show_facts(pool.job(self._job.id).job)
            elif isinstance(event.data, Job) and event.data.id == self._job.id:
                self.show_facts(event.data)
            if self._job.facts.state in ENDED:
                return

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
        """Wait until a later attempt has begun; false when the job ends without one."""
        for event in pool.events():
            facts = pool.job(self._job.id).job if event.kind in ("open", "reset") else event.data
            if isinstance(facts, Job) and facts.id == self._job.id:
                if facts.attempt > after and facts.started is not None:
                    return True
                if facts.state in ENDED:
                    return False
        return False


def _remark(facts: Job) -> str:
    if facts.reason is not None and facts.state not in ENDED:
        return facts.reason.text
    if facts.state is State.FAILED and facts.exit_code is not None:
        return failed_with(facts.exit_code)
    return (facts.progress.text or "") if facts.progress else ""
