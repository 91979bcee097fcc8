"""Progress of a job and its tracker runs, from the job's own reports."""

from __future__ import annotations

from benchpool_scheduler import contract
from benchpool_scheduler.core.lifecycle.states import HOLDS_GPUS, JobState
from benchpool_scheduler.phrases import tracker_link, visible
from benchpool_scheduler.service.process.clock import moment
from benchpool_scheduler.service.views import pace
from benchpool_scheduler.store.records import JobRecord


def progress_of(record: JobRecord) -> contract.Progress | None:
    """Return the progress of a job as shown to all its readers, or None without a report."""
    report = record.progress
    if report is None or (report.fraction is None and report.text is None):
        return None
    # An attempt without a report stands at the job's last save.
    silent = 0 < report.attempt < record.attempt and record.state in HOLDS_GPUS
    text = None if report.text is None or silent else visible(report.text)
    fraction = report.fraction
    if silent and fraction is not None:
        fraction = report.saved or 0.0
    elif fraction is None:
        fraction = report.saved or None  # it reports no fraction: the saved one is known
    previous_progress = None
    if fraction is not None:
        # Saved work stays done: a new attempt begins there, whatever it reports first.
        fraction = 1.0 if record.state is JobState.SUCCEEDED else max(fraction, report.saved or 0.0)
        most = max(report.before or 0.0, (report.fraction or 0.0) if silent else 0.0)
        previous_progress = most if most > fraction else None
    ends = pace.ends_at(report) if record.state is JobState.RUNNING else None
    return contract.Progress(
        fraction, text, moment(report.at), previous_progress, None if ends is None else moment(ends)
    )


def tracker_runs_of(record: JobRecord) -> list[contract.TrackerLink]:
    """Return links to the job's tracker runs, the newest last."""
    runs = () if record.progress is None else record.progress.runs
    return [
        contract.TrackerLink(it.tracker, it.url, tracker_link(it.tracker, it.url)) for it in runs
    ]
