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
            "External pods are admitted by their namespace and cannot be submitted. Submit "
            "a script, module, command or notebook.",
            code="pods-not-sent",
            field="entry",
        )


def check_may_change(submission: JobSubmission, wanted: Collection[str]) -> None:
    """Refuse changes of a job of external pods, except of its priority. Errors: Refused."""
    fixed = sorted(set(wanted) - {"priority"})
    if isinstance(submission.entry, PodsEntry) and fixed:
        raise Refused(
            f"{', '.join(fixed)} cannot be changed: the pods were created outside benchpool. "
            "Change the workload that creates them. Only the job's priority can be changed.",
            code="pods-are-fixed",
            field=fixed[0],
        )
