"""Access check for the self-test job that a start of benchpool submits."""

from __future__ import annotations

from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.spec import SELF_TEST
from benchpool_scheduler.errors import Forbidden, InvalidInput
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.access.caller import Caller

LONGEST_SELF_TEST_S = 30
"""Maximum time limit of a self-test, in seconds."""


def check_self_test(caller: Caller, submission: JobSubmission) -> None:
    """Refuse a self-test unless an administrator submits it with one GPU and at most 30 s.

    A self-test is in no list, and budgets do not apply to it. Errors: Forbidden, InvalidInput.
    """
    kind = submission.source.kind if submission.source else ""
    if SELF_TEST not in (*submission.tags, kind):
        return
    if not (caller.kind == "user" and caller.admin):
        raise Forbidden(
            f"{SELF_TEST} is reserved for the job with which benchpool tests itself at its start. "
            "Use another tag and source.",
            field="tags",
        )
    limit = submission.time_limit_s
    if submission.spec.total_gpus > 1 or limit is None or limit > LONGEST_SELF_TEST_S:
        raise InvalidInput(
            f"A self-test has one GPU and a time limit of at most {LONGEST_SELF_TEST_S} s; this "
            f"one asks for {count(submission.spec.total_gpus, 'GPU')} and "
            f"{'no time limit' if limit is None else f'{limit} s'}.",
            field="tags",
        )
