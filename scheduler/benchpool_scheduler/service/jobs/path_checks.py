"""Checks of the paths and words of a submission."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
)
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.phrases import visible


def check_paths(submission: JobSubmission) -> None:
    """Refuse paths that are not absolute or contain "..", and words with a zero byte.

    Errors: InvalidInput.
    """
    for field in ("working_dir", "output_dir"):
        path = getattr(submission, field)
        if path is not None and not _is_plain_absolute(path):
            raise InvalidInput(
                f"{field} is {path!r}; it must be an absolute path without '..'.", field=field
            )
    interpreter = submission.interpreter
    if interpreter is not None and "/" in interpreter and not _is_plain_absolute(interpreter):
        raise InvalidInput(
            f"interpreter is {interpreter!r}; name a command such as python3, or an absolute path.",
            field="interpreter",
        )
    for word in _words(submission):
        if "\0" in word:
            raise InvalidInput("The command has a zero byte in it.", field="entry")
    for what, path, field in _paths(submission):
        _check_path(path, what, field)


def _check_path(path: str, what: str, field: str) -> None:
    """Refuse a path with a control character; all other paths are accepted.

    Errors: InvalidInput.
    """
    if any(unicodedata.category(each) in ("Cc", "Cs") for each in path):
        raise InvalidInput(
            f"{what} is {visible(path)[:200]!r}, which contains a control character. Rename the "
            "file or folder.",
            field=field,
        )


def _paths(submission: JobSubmission) -> Iterable[tuple[str, str, str]]:
    """Yield the paths of a submission: name for messages, path, and field."""
    for field in ("working_dir", "output_dir", "interpreter"):
        yield field, getattr(submission, field) or "", field
    match submission.entry:
        case ScriptEntry(path=path):
            yield "The script", path, "entry"
        case NotebookEntry(name=name):
            yield "The notebook's name", name, "entry"
        case _:
            pass
    if submission.source is not None:
        yield "source.path", submission.source.path or "", "source"
    for file in submission.files:
        yield "The file path", file.path, "files"


def _is_plain_absolute(path: str) -> bool:
    return path.startswith("/") and "\0" not in path and ".." not in path.split("/")


def _words(submission: JobSubmission) -> Iterable[str]:
    match submission.entry:
        case CommandEntry(argv=argv):
            return argv
        case ScriptEntry(path=path, args=args):
            return [path, *args]
        case ModuleEntry(args=args):
            return args
        case NotebookEntry(name=name):
            return [name]
        case PodsEntry(pods=pods):
            return pods
