"""Texts about retries; pure functions. ``notices`` has all other texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from benchpool_scheduler.contract import Reason
from benchpool_scheduler.contract.causes import MOST_RETRIES, EndCause
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.retries import RetryVerdict
from benchpool_scheduler.phrases import exactly
from benchpool_scheduler.store.retries import RetryRecord

_AFTER: Mapping[EndCause, str] = MappingProxyType(
    {
        EndCause.OUT_OF_GPU_MEMORY: "running out of GPU memory",
        EndCause.OUT_OF_MEMORY: "running out of memory",
        EndCause.TIME_LIMIT: "reaching its time limit",
        EndCause.COULD_NOT_START: "a failed start",
        EndCause.HANGING: "hanging",
    }
)


def after(retry: RetryRecord) -> str:
    """Return the cause of a retry, as the end of a clause.

    >>> after(RetryRecord(1, EndCause.GPU_ERROR, 0.0, "node-3", xid=79))
    'an XID 79 on node-3'
    >>> after(RetryRecord(1, EndCause.EXIT_CODE, 0.0, "node-3", exit_code=2))
    'exit code 2'
    """
    if retry.cause is EndCause.GPU_ERROR:
        what = "a GPU error" if retry.xid is None else f"an XID {retry.xid}"
        return f"{what} on {retry.node}"
    if retry.cause is EndCause.EXIT_CODE:
        return "a failure" if retry.exit_code is None else f"exit code {retry.exit_code}"
    return _AFTER[retry.cause]


def times(number: int) -> str:
    """Return a number of times in words.

    >>> times(1), times(2), times(3)
    ('once', 'twice', '3 times')
    """
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def history(retries: Sequence[RetryRecord], *, over: bool) -> str:
    """Return the sentence about the retries of a job, or an empty text without any.

    Args:
        over: The job has ended.

    >>> one = RetryRecord(1, EndCause.GPU_ERROR, 0.0, "node-3", xid=79, step=1200, saved=True)
    >>> history([one], over=False)
    'Tried again once after an XID 79 on node-3; it resumes from its checkpoint of step 1200.'
    >>> two = RetryRecord(2, EndCause.EXIT_CODE, 0.0, "node-4", exit_code=1)
    >>> history([one, two, two], over=True)
    'Tried again 3 times: once after an XID 79 on node-3, twice after exit code 1; it started over.'
    """
    if not retries:
        return ""
    counts = Counter(after(it) for it in retries)
    parts = [f"{times(number)} after {what}" for what, number in counts.items()]
    summary = parts[0] if len(parts) == 1 else f"{times(len(retries))}: {', '.join(parts)}"
    return f"Tried again {summary}; it {_resumes(retries[-1], over)}."


def _resumes(retry: RetryRecord, over: bool) -> str:
    if not retry.saved:
        return "started over" if over else "starts over, because it had saved nothing"
    which = "last checkpoint" if retry.step is None else f"checkpoint of step {retry.step}"
    return f"{'resumed' if over else 'resumes'} from its {which}"


def waits(retry: RetryRecord) -> str:
    """Return why a job waits during the pause before a retry.

    >>> waits(RetryRecord(2, EndCause.EXIT_CODE, 0.0, "node-4", pause_s=10.0, exit_code=1))
    'It is tried again 10 s after the end of attempt 2, which ended with exit code 1.'
    """
    how = "failed after" if retry.cause is EndCause.GPU_ERROR else "ended with"
    if retry.cause in _AFTER:
        how = "ended by"
    ended = f"attempt {retry.attempt}, which {how} {after(retry)}"
    return f"It is tried again {exactly(retry.pause_s)} after the end of {ended}."


def avoids(retry: RetryRecord) -> str:
    """Return which node a job avoids, and why.

    >>> avoids(RetryRecord(2, EndCause.GPU_ERROR, 0.0, "node-3", avoid_s=3600.0, xid=79))
    'For 1 h from then on it is not started on node-3 again: attempt 2 had an XID 79 on node-3.'
    """
    return (
        f"For {exactly(retry.avoid_s)} from then on it is not started on {retry.node} again: "
        f"attempt {retry.attempt} had {after(retry)}."
    )


def why_not(verdict: RetryVerdict, cause: EndCause, number: int, named: bool) -> str:
    """Return why a failed job is not retried, or an empty text if no retry was requested.

    Args:
        number: Retries after this cause. ``named``: the job names the causes for retries.

    >>> why_not(RetryVerdict.SAME_TRACEBACK, EndCause.EXIT_CODE, 1, False)
    'It is not tried again: the traceback is the same as before one of its retries.'
    >>> why_not(RetryVerdict.NOT_ASKED, EndCause.EXIT_CODE, 0, True)
    'It is not tried again: its retries are for other causes than exit-code.'
    >>> why_not(RetryVerdict.USED_UP, EndCause.GPU_ERROR, 2, False)
    'It is not tried again: it was retried twice after gpu-error, which is the limit.'
    """
    reason = {
        RetryVerdict.SAME_TRACEBACK: "the traceback is the same as before one of its retries",
        RetryVerdict.USED_UP: f"it was retried {times(number)} after {cause}, which is the limit",
        RetryVerdict.MOST: f"it was retried {MOST_RETRIES} times in all, which is the limit",
        RetryVerdict.NOT_ASKED: f"its retries are for other causes than {cause}" if named else "",
    }.get(verdict, "")
    return f"It is not tried again: {reason}." if reason else ""


def tries_again(reason: Reason, retry: RetryRecord) -> Reason:
    """Return the reason of a job that waits for its retry."""
    return msgspec.structs.replace(
        reason,
        code=ReasonCode.TRIES_AGAIN.value,
        text=waits(retry),
        numbers={"again_s": retry.pause_s, "attempt": retry.attempt},
        remedy="Nothing to do: it queues by itself then. Cancel it if you do not want that.",
    )


def keeps_off(reason: Reason, retry: RetryRecord) -> Reason:
    """Return a wait reason extended by a node on which the job failed."""
    return msgspec.structs.replace(reason, text=f"{reason.text} {avoids(retry)}")
