"""Checks of external pods: they cannot be submitted by users, and their size cannot be changed."""

from __future__ import annotations

from collections.abc import Collection

from benchpool_scheduler.contract import JobSubmission, PodsEntry
from benchpool_scheduler.errors import InvalidInput, Refused


def check_sender(submission: JobSubmission, *, admits: bool) -> None:
    """Refuse external pods that a user submits. Errors: InvalidInput.

    Args:
        admits: The scheduler itself submits them, for existing pods.
    """
    if isinstance(submission.entry, PodsEntry) and not admits:
        raise InvalidInput(
            "Pods of others come in by their namespace, not as a submission: say what to run with "
            "a script, module, command or notebook.",
            code="pods-not-sent",
            field="entry",
        )


def check_may_change(submission: JobSubmission, wanted: Collection[str]) -> None:
    """Refuse changes of a job of external pods, except of its priority. Errors: Refused."""
    fixed = sorted(set(wanted) - {"priority"})
    if isinstance(submission.entry, PodsEntry) and fixed:
        raise Refused(
            f"{', '.join(fixed)} cannot be changed: its pods were made by others, and ask for what "
            "they ask for. Change what makes them; of the job only the priority can be changed.",
            code="pods-are-fixed",
            field=fixed[0],
        )
