"""``benchpool submit``: sends the current folder and a command, and can follow the job."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from benchpool_scheduler.cli import entry as entries
from benchpool_scheduler.cli import following, interpreters, notebooks, scheduling, sweeping, words
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.client import code_warnings, imports, snapshot, sweep_plans
from benchpool_scheduler.client.results import RESULTS
from benchpool_scheduler.contract import (
    ENDED,
    CommandEntry,
    Entry,
    Job,
    JobSubmission,
    NotebookEntry,
    Preview,
    ScriptEntry,
    Source,
    State,
)
from benchpool_scheduler.contract.jobs import NOT_DELIVERED
from benchpool_scheduler.contract.options import fields_of, written
from benchpool_scheduler.contract.parameters import ParameterValue
from benchpool_scheduler.contract.schedules import SchedulePreview
from benchpool_scheduler.errors import InvalidInput

INTERRUPTED = 130


def submit(session: Session, command: Sequence[str], options: Mapping[str, Any]) -> int:
    """Submit a job and print its state. With ``--wait`` follow it to its end."""
    sweeping.check_alone(options)
    scheduling.check_alone(options)
    command, pairs = entries.parameters_after(command)
    options = {**options, "parameters": [*(options["parameters"] or ()), *pairs]}
    entry = entries.read(command, session.folder)
    asked = fields_of(written(options, session.environ))
    given = asked.pop("parameters", {})
    parameters: Mapping[str, ParameterValue] = {}
    sent: dict[str, bytes] = {}
    if isinstance(entry, NotebookEntry):
        path = session.folder / command[0]
        notebook, parameters = notebooks.parametrized(path, given)
        entry = replace(entry, notebook=hashlib.sha256(notebook).hexdigest())
        sent[entry.notebook] = notebook
    elif given:
        raise InvalidInput(
            "-p is for notebooks. Write the arguments of a script after its name.",
            field="parameters",
        )
    python = _python(session, entry, options, command)
    files = taken_files(session, entry)
    asked |= {"parameters": parameters, "interpreter": python}
    submission = _submission(session, entry, files, options, asked)
    check_imports(session, submission, command)
    print_code_warnings(session, submission, command)
    if sweeping.is_many(options):
        if isinstance(entry, NotebookEntry) and options["sweep"]:
            swept = dict(map(sweep_plans.pair_of, options["sweep"]))
            sweep_plans.check_names(swept, notebooks.names(session.folder / command[0]))
        return _sweep(session, submission, options, {**files.contents, **sent})
    if options["every"]:
        request = scheduling.request_of(submission, options)
        times = session.client.preview_schedule(request)
        if options["dry_run"]:
            return _show_preview(session, times)
        snapshot.upload(session.client, {**files.contents, **sent})
        return scheduling.begin(session, request)
    # Refusals come before any upload.
    preview = session.client.preview(submission)
    if options["dry_run"]:
        return _show_preview(session, preview)
    snapshot.upload(session.client, {**files.contents, **sent})
    job = session.client.submit(submission)
    if not options["wait"]:
        given_key = options["key"] is not None
        _print_accepted(session, job, preview.text, submission, given_key=given_key)
        return 0
    return _follow_to_its_end(session, job)


def _follow_to_its_end(session: Session, job: Job) -> int:
    """Print the log of a job and its end, and return the exit status for it."""
    session.screen.aside(f"{words.short(job.id)} {job.name}: sent to project {job.project}")
    try:
        job = _wait(session, job)
    except KeyboardInterrupt:
        session.screen.aside(runs_on(job))
        return INTERRUPTED
    if session.screen.json:
        session.screen.value(job)
    else:
        session.screen.aside(f"{words.short(job.id)} {job.name}: {job.state}")
        if job.reason is not None:
            session.screen.aside(words.clean(job.reason.text))
            if job.reason.code == NOT_DELIVERED:
                session.screen.aside(words.clean(job.reason.remedy))
    return exit_status(job)


def _sweep(
    session: Session,
    submission: JobSubmission,
    options: Mapping[str, Any],
    contents: Mapping[str, Any],
) -> int:
    request = sweeping.request_of(submission, options)
    preview = session.client.preview_sweep(request)
    if options["dry_run"]:
        return sweeping.show_preview(session, request, preview)
    session.screen.aside(preview.text)
    snapshot.upload(session.client, contents)
    return sweeping.begin(session, request)


def _show_preview(session: Session, preview: Preview | SchedulePreview) -> int:
    """Print what would happen to a job or a schedule."""
    if session.screen.json:
        session.screen.value(preview)
    else:
        session.screen.line(words.clean(preview.text))
        session.screen.line(sweeping.NOTHING_SENT)
    return 0


def runs_on(job: Job) -> str:
    """Return the message for Ctrl-C: the job keeps running."""
    id_ = words.short(job.id)
    return (
        f"{id_} continues. `benchpool logs -f {id_}` follows it, `benchpool cancel {id_}` ends it."
    )


def exit_status(job: Job) -> int:
    """Return the exit status for a job that has ended."""
    if job.state is State.SUCCEEDED:
        return 0
    return job.exit_code if job.exit_code and 0 < job.exit_code < 256 else 1


def taken_files(session: Session, entry: Entry) -> snapshot.FolderSnapshot:
    """Return the files of the folder that are sent with a job. Print a summary of the others."""
    must = [entry.path] if isinstance(entry, ScriptEntry) else []
    taken = snapshot.take(session.folder, must=must)
    for sentence in taken.sentences():
        session.screen.aside(sentence)
    return taken


def _python(
    session: Session, entry: Entry, options: Mapping[str, Any], command: Sequence[str]
) -> str:
    """Return the Python of a job. For a notebook, print which one it is and why."""
    notebook = command[0] if isinstance(entry, NotebookEntry) else None
    found = interpreters.python_for(
        entry,
        session.environ,
        session.folder,
        asked=options["python"],
        image=options["image"],
        notebook=notebook,
    )
    if notebook is not None:
        session.screen.aside(f"{notebook} {found.why}.")
    return found.path


def _submission(
    session: Session,
    entry: Entry,
    files: snapshot.FolderSnapshot,
    options: Mapping[str, Any],
    asked: Mapping[str, Any],
) -> JobSubmission:
    name = options["name"] or entries.name_of(entry)
    key = options["key"] or uuid.uuid4().hex
    folder = f"{_plain(name)}-{key[:8]}" if options["key"] is None else _plain(f"{name}-{key}")
    here = {
        "name": name,
        "key": key,
        "output_dir": str(session.folder / RESULTS / folder),
        "files": list(files.files),
        "source": Source(kind="terminal", path=str(session.folder)),
        "image": options["image"] or session.environ.get(imports.IMAGE) or None,
    }
    return JobSubmission(entry=entry, **{**asked, **here})


def check_imports(session: Session, submission: JobSubmission, command: Sequence[str]) -> None:
    """Refuse a submission with imports that are known to fail in its Python.

    Raises:
        InvalidInput: The first such import.
    """
    entry = submission.entry
    if isinstance(entry, CommandEntry):
        return
    if submission.image is not None and submission.image != session.environ.get(imports.IMAGE):
        session.screen.aside(f"{imports.unchecked(submission.image)}.")
        return
    notebook = command[0] if isinstance(entry, NotebookEntry) else None
    found = imports.missing_of(session.folder, submission, session.environ, notebook)
    for each in sorted(found, key=lambda each: not each.sure):
        line = f", line {each.line}" if each.line else ""
        message = f"{each.where}{line}: {each.text}"
        message = message if message.endswith("?") else f"{message}."
        if each.sure:
            raise InvalidInput(message, field="entry")
        session.screen.aside(message)


def print_code_warnings(
    session: Session, submission: JobSubmission, command: Sequence[str]
) -> None:
    """Print warnings about code that is likely to fail in a job."""
    notebook = command[0] if isinstance(submission.entry, NotebookEntry) else None
    for each in code_warnings.of_submission(session.folder, submission, notebook):
        session.screen.aside(f"{each.where}, line {each.line}: {each.text}.")


def _plain(name: str) -> str:
    """Return a name with safe characters only, for a folder's name."""
    kept = "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in name)
    return kept.strip(".")[:80] or "job"


def _print_accepted(
    session: Session, job: Job, plan: str, submission: JobSubmission, *, given_key: bool
) -> None:
    """Print the job and its expected start. With ``--key`` the job may already exist."""
    screen = session.screen
    if screen.json:
        screen.value(job)
        return
    id_ = words.short(job.id)
    screen.heading(f"{id_} {words.clean(job.name)}, project {job.project}")
    sent_before = given_key and job.state is not State.QUEUED
    screen.line(words.clean(f"The job with this key: {job.state}." if sent_before else plan))
    screen.line(f"Follow it with `benchpool logs -f {id_}`; results go to {submission.output_dir}")


def _wait(session: Session, job: Job) -> Job:
    screen = session.screen
    report = (lambda text: None) if screen.json else screen.aside
    pieces = following.follow(
        session.client, job.id, worker=0, report=report, show_log=not screen.json
    )
    for piece in pieces:
        screen.bytes(piece)
    ended = session.client.job(job.id).job
    return ended if ended.state in ENDED else session.client.wait(job.id)
