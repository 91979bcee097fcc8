"""Lookup of the input of a service template: a job's results, a store or a script."""

from __future__ import annotations

from pathlib import Path

from benchpool_scheduler.cli import entry as entries
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.client import results
from benchpool_scheduler.client.service_templates import Shows
from benchpool_scheduler.errors import InvalidInput


def shown(session: Session, shows: Shows, word: str) -> str:
    """Return the input in the form that the program takes.

    Errors: InvalidInput if it does not exist, and those of requesting a job.
    """
    match shows:
        case Shows.FOLDER:
            return str(_folder(session, word))
        case Shows.STORE:
            return _store(session.folder, word)
        case Shows.SCRIPT:
            entries.read([word], session.folder)  # raises if the script does not exist
            return word


def _folder(session: Session, word: str) -> Path:
    here = (session.folder / word).absolute()
    if here.is_dir():
        return here
    job = session.client.job(word).job
    folder = results.folder_of(
        session.client.submission(job.id).output_dir, session.folder, job.id
    ).absolute()
    if not folder.is_dir():
        raise InvalidInput(
            f"The results of job {word} are not on this machine yet: {folder} does not exist. They "
            "arrive when the job ends, or with `benchpool results`.",
            field="template",
        )
    return folder


def _store(folder: Path, word: str) -> str:
    if "://" in word:
        return word
    here = (folder / word).absolute()
    if not here.is_file():
        raise InvalidInput(
            f"There is no file {word} here. Name the database of MLflow, such as mlflow.db, or "
            "its address.",
            field="template",
        )
    return f"sqlite:///{here}"
