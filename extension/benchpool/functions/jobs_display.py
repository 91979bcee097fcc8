"""Widget for the jobs of a ``map``: one line for all, one for each job, and a cancel button.

Text of the jobs is shown in plain labels, never as HTML.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

from benchpool.functions.sent_jobs import ended, line_of
from benchpool_scheduler.client import discover
from benchpool_scheduler.client.plain import Client
from benchpool_scheduler.contract import Job
from benchpool_scheduler.errors import BenchpoolError

if TYPE_CHECKING:
    from benchpool.functions.sent_jobs import SentJobs

LINES = 100
"""Maximum number of jobs with a line of their own."""


def show(jobs: SentJobs) -> None:
    """Display jobs: as live widgets if ipywidgets is available, else as text."""
    from IPython import get_ipython
    from IPython.display import display

    if getattr(get_ipython(), "kernel", None) is None:
        print(repr(jobs))
        return
    display(JobRows(jobs).widget)


class JobRows:
    """Widget of several jobs, with the thread that keeps it current until all have ended."""

    def __init__(self, jobs: SentJobs, *, follow: bool = True) -> None:
        import ipywidgets as widgets

        from benchpool.handles import line_of as line_of_job

        self._jobs = jobs
        self._line_of_job = line_of_job
        self._by_id = {each.id: each for each in jobs}
        self.title = widgets.Label(style={"font_weight": "600"})
        self.bar = widgets.FloatProgress(min=0.0, max=1.0, layout=widgets.Layout(width="160px"))
        self.cancel = widgets.Button(
            description="cancel the rest", tooltip="cancel all jobs that have not ended"
        )
        self.cancel.on_click(lambda _button: self._cancel())
        self.message = widgets.Label()
        self.lines = {each.id: widgets.Label() for each in jobs[:LINES]}
        flow = widgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="2px 12px")
        head = widgets.Box([self.title, self.bar, self.cancel, self.message], layout=flow)
        frame = widgets.Layout(
            border="1px solid var(--jp-border-color2)", padding="6px 10px", width="auto"
        )
        self.widget = widgets.VBox([head, *self.lines.values()], layout=frame)
        self.draw()
        if follow:
            threading.Thread(target=self._follow, daemon=True).start()

    def draw(self) -> None:
        """Show the facts read last."""
        for id_, line in self.lines.items():
            line.value = self._line_of_job(self._by_id[id_].facts)
        done = ended(self._jobs)
        self.bar.value = done / max(1, len(self._jobs))
        self.cancel.layout.display = "none" if done == len(self._jobs) else None
        # Last, so that a reader waiting for it finds everything that belongs to it.
        self.title.value = line_of(self._jobs)

    def _cancel(self) -> None:
        try:
            self._jobs.cancel()
        except BenchpoolError as refused:
            self.message.value = refused.message
        self.draw()

    def _follow(self) -> None:
        try:
            # Threads that stream do not share connections.
            with Client(discover(os.environ), patience_s=60.0) as pool:
                for event in pool.events():
                    if event.kind in ("open", "reset"):
                        for each in self._jobs:
                            each.facts = pool.job(each.id).job
                    elif isinstance(event.data, Job) and event.data.id in self._by_id:
                        self._by_id[event.data.id].facts = event.data
                    else:
                        continue
                    self.draw()
                    if ended(self._jobs) == len(self._jobs):
                        return
        except BenchpoolError as lost:
            self.message.value = lost.message
