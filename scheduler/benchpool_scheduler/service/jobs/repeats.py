"""Submissions with a known key: an identical repeat is accepted, other content is refused."""

from __future__ import annotations

from collections.abc import Iterator

from benchpool_scheduler.contract import CommandEntry, JobSubmission, ScriptEntry
from benchpool_scheduler.errors import Refused
from benchpool_scheduler.store.records import JobRecord

NOT_COMPARED = frozenset({"key", "source", "image"})
"""Fields not compared: the key is equal, the source is not content, and the image was resolved to a
digest.
"""

FROM_ELSEWHERE = frozenset({"name", "project"})
"""Fields that the service fills in if they are missing."""

FILES = 3
"""Maximum number of changed files named."""


def check_same(job: JobRecord, first: JobSubmission, again: JobSubmission) -> None:
    """Refuse a submission whose content differs from the job of its key. Errors: Refused."""
    found = list(differences(first, again))
    if found:
        raise Refused(
            f"The key {again.key!r} belongs to job {job.id[:8]} ({job.name}), which was sent with "
            f"other content: {'; '.join(found)}. Nothing was sent. Choose another key, or none.",
            code="repeated-key",
            field="key",
            numbers={"job": job.id},
        )


def differences(first: JobSubmission, again: JobSubmission) -> Iterator[str]:
    """Yield the differences between a submission and the first one with its key.

    >>> run = JobSubmission(CommandEntry(["fit"]), gpus=2, project="vision")
    >>> list(differences(run, JobSubmission(CommandEntry(["fit"]), gpus=2)))
    []
    >>> list(differences(run, JobSubmission(CommandEntry(["fit", "-v"]), gpus=1)))
    ['command fit, now fit -v', 'gpus 2, now 1']
    """
    for field in JobSubmission.__struct_fields__:
        was, now = _value(first, field), _value(again, field)
        if field in NOT_COMPARED or was == now or (field in FROM_ELSEWHERE and now is None):
            continue
        yield _files(first, again) if field == "files" else _difference(field, was, now)


def _value(submission: JobSubmission, field: str) -> object:
    value = getattr(submission, field)
    return {file.path: file for file in value} if field == "files" else value


def _difference(field: str, was: object, now: object) -> str:
    match was, now:
        case CommandEntry(argv=before), CommandEntry(argv=after):
            return f"command {' '.join(before)}, now {' '.join(after)}"
        case ScriptEntry(path=before), ScriptEntry(path=after) if before != after:
            return f"script {before}, now {after}"
        case (ScriptEntry(), ScriptEntry()):
            return "arguments of the script"
        case ((bool() | int() | float() | str()), (bool() | int() | float() | str())):
            return f"{field} {was}, now {now}"
    return "the program" if field == "entry" else field


def _files(first: JobSubmission, again: JobSubmission) -> str:
    was, now = ({file.path: file for file in one.files} for one in (first, again))
    changed = sorted(path for path in was.keys() | now.keys() if was.get(path) != now.get(path))
    more = f" and {len(changed) - FILES} more" if len(changed) > FILES else ""
    return f"files {', '.join(changed[:FILES])}{more}"
