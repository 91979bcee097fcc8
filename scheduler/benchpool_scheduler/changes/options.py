"""Differences between two submissions: options, arguments, files. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.run_changes import RunChange
from benchpool_scheduler.curves.parameters import parameters_of
from benchpool_scheduler.phrases import visible

SHOWN = 12
"""Number of characters shown of a digest."""


def option_changes(before: JobSubmission, after: JobSubmission) -> list[RunChange]:
    """Return the differences in options, arguments and sent files.

    >>> from benchpool_scheduler.contract import CommandEntry
    >>> one, two = (JobSubmission(CommandEntry(["fit"]), gpus=gpus) for gpus in (1, 2))
    >>> [(it.name, it.before, it.after) for it in option_changes(one, two)]
    [('GPUs', '1', '2')]
    """
    return [
        *_otherwise("option", parameters_of(before), parameters_of(after)),
        *_otherwise("file", _files(before), _files(after)),
    ]


def is_repeat(before: JobSubmission, after: JobSubmission) -> bool:
    """Return whether a submission runs the same as another one, with the same options."""
    return before.entry == after.entry and not option_changes(before, after)


def _otherwise(area: str, was: Mapping[str, str], now: Mapping[str, str]) -> Iterator[RunChange]:
    for name in dict.fromkeys([*was, *now]):
        if was.get(name) != now.get(name):
            yield RunChange(area, name, was.get(name), now.get(name))


def _files(submission: JobSubmission) -> dict[str, str]:
    return {
        visible(one.path): one.sha256[:SHOWN]
        for one in sorted(submission.files, key=lambda it: it.path)
    }
