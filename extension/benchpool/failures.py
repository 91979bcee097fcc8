"""Failure of a job as an exception, with the traceback that the job wrote."""

from __future__ import annotations

import builtins
import re

_HEAD = "Traceback (most recent call last)"
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")
_CELL = re.compile(r"^benchpool: (cell \d+) failed: (\w+):(.*)$", re.MULTILINE)
_LAST_LINE = re.compile(r"^([A-Za-z_][\w.]*)(?::\s?(.*))?$")
_RULE = re.compile(r"^-{20,}$")


class JobFailed(Exception):
    """The job did not succeed.

    The exception raised by ``Job.result`` also has the class of the job's exception, if that is a
    built-in one other than an exit: ``except ValueError`` catches a job's ValueError.

    Attributes:
        job: ID of the job.
        error: Name of the exception that ended it; empty if there was none.
        traceback: Traceback that the job wrote, with the lines of its cells or files.
    """

    def __init__(self, message: str, job: str, error: str = "", traceback: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.job = job
        self.error = error
        self.traceback = traceback

    def __str__(self) -> str:
        return f"{self.message}\n\n{self.traceback}" if self.traceback else self.message

    def _render_traceback_(self) -> list[str]:
        """Return the lines shown in a notebook: the job's traceback without benchpool's frames."""
        return [*self.traceback.splitlines(), "", f"JobFailed: {self.message}"]


def failure(message: str, job: str, log: str) -> JobFailed:
    r"""Return the exception for a job that failed.

    Args:
        message: One sentence.
        log: The end of the job's log.

    >>> log = "Traceback (most recent call last):\n  x\nKeyError: 'a'\n"
    >>> raised = failure("train failed.", "3fk2", log)
    >>> isinstance(raised, KeyError), raised.error, str(raised).splitlines()[-1]
    (True, 'KeyError', "KeyError: 'a'")
    """
    text = traceback_of(log)
    error = _error_of(log, text)
    return _class_for(error)(message, job, error, text)


def traceback_of(log: str) -> str:
    """Return the last traceback of a log, with the chained ones before it, or an empty text."""
    lines = log.splitlines()
    heads = [at for at, line in enumerate(lines) if _HEAD in line]
    if not heads:
        return ""
    first = heads[-1]
    for before in reversed(heads[:-1]):
        between = "\n".join(lines[before:first])
        if not any(each in between for each in _CHAINED):
            break
        first = before
    if first and _RULE.match(lines[first - 1]):
        first -= 1
    rest = lines[first:]
    last = next((at for at, line in enumerate(rest) if line.startswith("benchpool: ")), len(rest))
    return "\n".join(rest[:last]).strip("\n")


def _error_of(log: str, text: str) -> str:
    """Return the name of the exception that ended the job."""
    cells = _CELL.findall(log)
    if cells:
        return str(cells[-1][1])
    after = text[text.rfind(_HEAD) :].splitlines()[1:]
    found = next((match for match in map(_LAST_LINE.match, after) if match), None)
    return found[1].rpartition(".")[2] if found else ""


def _class_for(error: str) -> type[JobFailed]:
    """Return a subclass of ``JobFailed`` and of the built-in exception, or ``JobFailed`` itself."""
    known = getattr(builtins, error, None)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        return JobFailed
    try:
        made = type("JobFailed", (JobFailed, known), {"__module__": __name__})
        made("", "")
    except TypeError:  # it needs further arguments, such as the bytes that could not be decoded
        return JobFailed
    return made
