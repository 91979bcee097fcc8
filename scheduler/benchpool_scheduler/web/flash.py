"""Message about the last action, on the page that it redirects to.

The address carries only a verb and a job ID. The text is made from the current job, so no address
can inject text into a page.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import asdict

from benchpool_scheduler.contract import Job, State
from benchpool_scheduler.contract.changes import all_in_words
from benchpool_scheduler.errors import NotFound
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.actions import FORMS
from benchpool_scheduler.web.job_rows import Action, Reader, actions
from benchpool_scheduler.web.pages import PageHandler

JOB_ID_SIGNS = 26


@dataclass(frozen=True, slots=True)
class Flash:
    """A message, and the action that reverts it, if any."""

    text: str
    job: Job
    undo: Action | None


_TEXTS: dict[tuple[str, State], str] = {
    ("pause", State.PAUSED): "{} is paused until you resume it.",
    ("pause", State.PAUSING): "{} has its notice and may save before it pauses.",
    ("resume", State.QUEUED): "{} waits in the queue again.",
    ("cancel", State.CANCELLED): "{} is cancelled.",
    ("cancel", State.PAUSING): "{} has its notice and ends after the grace period.",
    ("cancel", State.RUNNING): "{} has its notice and ends after the grace period.",
}


def flash(handler: PageHandler, caller: Caller) -> Flash | None:
    """Return the message for this address, or None."""
    verb = handler.get_query_argument("did", "")
    job_id = handler.get_query_argument("of", "")
    if verb not in FORMS or len(job_id) != JOB_ID_SIGNS:
        return None
    try:
        job = handler.site.pool.jobs.detail(caller, job_id).job
    except NotFound:
        return None
    return message(verb, job, Reader(caller.name, caller.admin))


def message(verb: str, job: Job, reader: Reader) -> Flash:
    """Return the message about ``verb`` on ``job``, by the job's current state."""
    form = FORMS[verb].form
    if form is not None and form.done:
        text = form.done.format(changeable=all_in_words(job), **asdict(job))
    else:
        text = _TEXTS.get((verb, job.state), "{} is " + job.state + " now.").format(job.name)
    undo = None
    if verb == "pause":
        undo = next((one for one in actions(job, reader, "") if one.verb == "resume"), None)
    return Flash(text, job, undo)
