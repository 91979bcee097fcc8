"""Texts for users about jobs and queued servers: notices, notes and reasons; pure functions.

A *notice* goes to the workers that must stop, and is shown at the job while they leave. A *note*
stays at the job. A *reason* is either of them in the API. The core words why a job waits
(``core.explain``), and a supervisor words its findings at a worker. All other texts are here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from benchpool_scheduler.contract import Reason
from benchpool_scheduler.core.lifecycle.reason_codes import ReasonCode
from benchpool_scheduler.core.lifecycle.states import Intent
from benchpool_scheduler.phrases import count, exactly, failed_with, visible
from benchpool_scheduler.runtime import EndedBy, Notice
from benchpool_scheduler.store.records import JobRecord, Note, StopIntent, WorkerRecord
from benchpool_scheduler.worker.supervisor import failure

_MOST_REASON = 500
"""Maximum number of characters of a user's reason that are passed on."""

NoticeKind = Literal["pause", "cancel"]

LOST = frozenset(
    map(str, (EndedBy.LOST, EndedBy.NOT_TAKEN, EndedBy.MACHINE_FAULT, EndedBy.NO_ROOM))
)
"""Ends that the job did not cause: it is queued again, and no retry of its user is used up."""

# --------------------------------------------------------------------------- stops


def notice(stop: StopIntent, grace_s: float | None = None) -> Notice:
    """Return the notice to workers; ``grace_s`` is the rest of the grace period."""
    kind: NoticeKind = "cancel" if stop.kind is Intent.CANCEL else "pause"
    return Notice(kind, stop.grace_s if grace_s is None else grace_s, stop.for_, stop.text)


def fewer_workers(grace_s: float) -> Notice:
    """Return the notice that is resent to a worker which was leaving when the scheduler ended."""
    return Notice("pause", grace_s, "others", "The job goes on with fewer workers.")


def over_already() -> Notice:
    """Return the notice to a worker that still runs although its end is on record."""
    return Notice("cancel", 5.0, "", "The end of this worker is already recorded.")


def unknown_ended(by: str, grace_s: float) -> Notice:
    """Return the notice to a worker without a database record that a user ends."""
    return Notice("cancel", grace_s, "", f"Ended by {by}: the database does not know this job.")


def preempted_for_job(
    claimant: JobRecord, victim: JobRecord, gpus: int, rule: str, grace_s: float, now: float
) -> StopIntent:
    """Return why a job is preempted for another; ``gpus`` is the number of GPUs it must release.

    The victim's owner reads it, also in the worker. Another user's job is therefore not named.
    """
    named = claimant.user == victim.user
    job = f"its job {claimant.name}" if named else "a job of its own"
    why = (
        f"project {claimant.project} reclaims {count(gpus, 'GPU')} for {job}, "
        f"which needs {claimant.spec.total_gpus}"
    )
    for_ = f"{claimant.project}/{claimant.name}" if named else claimant.project
    text = _makes_room(why, rule, grace_s)
    return StopIntent(Intent.PREEMPT, now, grace_s, for_=for_, text=text, claimant=claimant.id)


def preempted_for_benches(
    gpus: int, rule: str, grace_s: float, now: float, *, lent: bool
) -> StopIntent:
    """Return why a job is preempted for benches; ``lent``: benches lend their idle GPUs."""
    why = f"{gpus} of its GPUs " + (
        "were lent by benches and their owner is back" if lent else "are kept for benches"
    )
    text = _makes_room(why, rule, grace_s)
    return StopIntent(Intent.PREEMPT, now, grace_s, for_="benches", text=text)


def _makes_room(why: str, rule: str, grace_s: float) -> str:
    return (
        f"Paused because {why} (rule {rule}). It has {exactly(grace_s)} to save and resumes by "
        "itself when there is room."
    )


def paused(
    by: str, reason: str | None, grace_s: float, now: float, *, held: bool = False
) -> StopIntent:
    """Return the stop of a job that a user pauses; ``reason`` is the user's reason.

    Args:
        held: An administrator pauses another user's job.
    """
    stop = _asked(Intent.PAUSE, "Paused", by, reason, grace_s, now)
    return msgspec.structs.replace(stop, held=held)


def resumed(by: str, reason: str | None, grace_s: float, now: float) -> StopIntent:
    """Return the stop of a job that a user resumes while it is still leaving."""
    return _asked(Intent.PREEMPT, "Stopped and then resumed", by, reason, grace_s, now)


def cancelled(by: str, reason: str | None, grace_s: float, now: float) -> StopIntent:
    """Return the stop of a job that a user cancels."""
    return _asked(Intent.CANCEL, "Cancelled", by, reason, grace_s, now)


def stopped_early(text: str, grace_s: float, now: float, for_: str = "its sweep") -> StopIntent:
    """Return the stop of a job that its sweep or service ends; ``text`` explains why."""
    return StopIntent(Intent.CANCEL, now, grace_s, for_=for_, text=text, early=True)


def scaled(by: str, workers: int, grace_s: float, now: float) -> StopIntent:
    """Return the stop of workers if a user reduces their number."""
    verb = f"Scaled to {count(workers, 'worker')}"
    return _asked(Intent.PAUSE, verb, by, None, grace_s, now)


def reason_given(reason: str | None) -> str:
    """Return a user's reason as it is shown to other users; empty if there is none."""
    return visible((reason or "").strip()[:_MOST_REASON])


def _asked(
    kind: Intent, verb: str, by: str, reason: str | None, grace_s: float, now: float
) -> StopIntent:
    given = reason_given(reason)
    why = f": {given}" if given else ""
    text = f"{verb} by {by}{why}"
    text = text if text.endswith((".", "!", "?")) else f"{text}."
    return StopIntent(kind, now, grace_s, by=by, for_=by, text=text)


def sibling_ended(worker: WorkerRecord, grace_s: float, now: float) -> StopIntent:
    """Return why the other workers of a gang must stop."""
    lost = worker.ended_by in LOST
    how = "was lost" if lost else failed_with(worker.exit_code or 0)
    if worker.ended_by == EndedBy.NOT_TAKEN:
        how = f"was not accepted by {worker.node}"
    if worker.ended_by == EndedBy.MACHINE_FAULT:
        how = f"could not start on {worker.node}"
    kind = Intent.PREEMPT if lost else Intent.CANCEL
    text = f"Worker {worker.index} {how}, and the workers of a gang end together."
    return StopIntent(kind, now, grace_s, for_="the other workers", text=text)


def hangs(at: float, grace_s: float) -> StopIntent:
    """Return why a job without activity must stop."""
    return StopIntent(Intent.PREEMPT, at, grace_s, text="It hangs and is tried again.")


SUSPENDED = Note(
    ReasonCode.PAUSED_BY_USER,
    "It was written with suspend: true.",
    "Set spec.suspend to false, or resume it, to let it queue.",
)


def is_paused(stop: StopIntent) -> Note:
    """Return why a job is paused."""
    if stop.held:
        remedy = f"Ask {stop.by}: an administrator paused it, and only administrators resume it."
        return Note(ReasonCode.PAUSED_BY_ADMINISTRATOR, stop.text, remedy, {"by": stop.by})
    remedy = "Resume it to let it queue again."
    return Note(ReasonCode.PAUSED_BY_USER, stop.text, remedy, {"by": stop.by})


def was_cancelled(stop: StopIntent | None) -> Note:
    """Return why a job was cancelled; ``stop`` is None if no request is known."""
    if stop is None:
        return Note(ReasonCode.CANCELLED_BY_USER, "It was cancelled.")
    code = ReasonCode.STOPPED_EARLY if stop.early else ReasonCode.CANCELLED_BY_USER
    return Note(code, stop.text, numbers={"by": stop.by})


def failed(which: str, worker: WorkerRecord, time_limit_s: float | None = None) -> Note:
    """Return why a job failed: the runtime's finding at the worker, else how the worker ended.

    Args:
        which: The job's name, with the number of the worker if there are several.
        time_limit_s: The job's time limit.
    """
    code, text, remedy = {
        str(EndedBy.TIME_LIMIT): (
            ReasonCode.TIME_LIMIT,
            f"{which} was ended at its time limit.",
            "Send it again with a longer time limit, or in smaller parts.",
        ),
        str(EndedBy.OUT_OF_MEMORY): (
            ReasonCode.OUT_OF_MEMORY,
            f"{which} was killed because the machine's memory ran out.",
            "Use smaller batches or fewer data workers, ask for more memory (--memory) if it was "
            "limited, or choose a machine with more.",
        ),
        str(EndedBy.COULD_NOT_START): (
            ReasonCode.COULD_NOT_START,
            f"{which} could not be started.",
            "Correct the named cause and send it again.",
        ),
    }.get(
        worker.ended_by or str(EndedBy.ITSELF),
        (
            ReasonCode.EXIT_CODE,
            f"{which} {failed_with(worker.exit_code or 0)}.",
            "See its log, correct the cause and send it again.",
        ),
    )
    if worker.text:
        text = _of_the_job(which, worker.text)
    if code is ReasonCode.TIME_LIMIT and time_limit_s is not None:
        text = f"{text[:-1]} ({exactly(time_limit_s)})."
    exit_code = {"exit_code": worker.exit_code} if code is ReasonCode.EXIT_CODE else {}
    return Note(code, text, remedy, {**exit_code, **failure.place(worker.text or "")})


def _of_the_job(which: str, clause: str) -> str:
    """Return a runtime's clause on a worker as a sentence, with the job's name for its ``it``.

    >>> _of_the_job("train", "it was ended at its time limit")
    'train was ended at its time limit.'
    >>> _of_the_job("train", "its image cannot be pulled: not found")
    'Its image cannot be pulled: not found.'
    """
    text = (
        f"{which} {clause[3:]}" if clause.startswith("it ") else f"{clause[:1].upper()}{clause[1:]}"
    )
    return text if text.endswith((".", "!", "?")) else f"{text}."


def queued_again(attempt: int, worker: WorkerRecord) -> Note:
    """Return why a job was queued again after its attempt was lost or refused by its node."""
    if worker.ended_by == EndedBy.NOT_TAKEN:
        text = worker.text or f"{worker.node} did not accept it."
        return Note(ReasonCode.LOST, f"Attempt {attempt} did not begin: {text}")
    if worker.ended_by == EndedBy.MACHINE_FAULT:
        text = worker.text or f"{worker.node} could not start it"
        return Note(ReasonCode.LOST, f"Attempt {attempt} did not begin: {text}.")
    if worker.ended_by == EndedBy.NO_ROOM:
        return Note(ReasonCode.NAMESPACE_QUOTA, f"Attempt {attempt} did not begin: {worker.text}.")
    text = worker.text or "Its machine was restarted or its supervisor was killed."
    return Note(ReasonCode.LOST, f"Attempt {attempt} was lost: {text}")


def stopped_unknown(attempt: int) -> Note:
    """Return why a job was queued again after a stop of which there is no record."""
    return Note(
        ReasonCode.LOST,
        f"Attempt {attempt} was stopped by a decision that is not in the database, because an "
        "older copy was restored: the job queues again.",
        "Cancel it if it should not run.",
    )


def lost_repeatedly(lost: int, limit: int, soon_s: float, worker: WorkerRecord | None) -> Note:
    """Return why a job was paused after repeated losses; ``worker`` is the last lost one."""
    message = worker.text if worker is not None else None
    if worker is not None and worker.ended_by == EndedBy.NOT_TAKEN:
        text = (
            f"It did not begin {lost} times in a row, on as many nodes; the last time: "
            f"{(message or f'{worker.node} did not accept it').rstrip('.')}."
        )
    elif worker is not None and worker.ended_by == EndedBy.MACHINE_FAULT:
        text = f"It could not start {lost} times in a row: {message or 'no message'}."
    else:
        message = message or "its supervisor was killed or the machine restarted"
        text = (
            f"It was lost {lost} times in a row within {exactly(soon_s)} of its start; "
            f"the last time: {message.rstrip('.')}."
        )
    return Note(
        ReasonCode.LOST_REPEATEDLY,
        text,
        "Check its log and `benchpool doctor`, then resume it.",
        {"lost": lost, "limit": limit},
    )


# --------------------------------------------------------------------------- reasons

NEXT_PASS = Reason(
    code=ReasonCode.NEXT_PASS.value,
    text="It has just entered the queue. The scheduling pass that decides about it starts now.",
    numbers={},
    remedy="Nothing to do.",
)
"""Reason of a job from its arrival until the first pass that includes it."""


def held(because: str) -> Reason:
    """Return why a job waits while no job may start; ``because`` is a clause."""
    return Reason(
        code=ReasonCode.SAFE_MODE.value,
        text=f"No new job starts until an administrator decides, because {because}.",
        numbers={},
        remedy="Ask an administrator, to whom `benchpool status` shows the decision. The job keeps "
        "its position in the queue.",
    )


def runs_unrecorded(job: str, attempt: int) -> Reason:
    """Return why a job waits that already runs in an attempt without a database record."""
    return Reason(
        code=ReasonCode.RUNS_UNRECORDED.value,
        text=f"It already runs: its attempt {attempt} is not in the pool's database, for example "
        "after a restore. It is not started a second time.",
        numbers={"attempt": attempt},
        remedy=f"An administrator adopts that attempt with `benchpool adopt {job}`, or ends it "
        f"with `benchpool adopt {job} --end`; the job then queues like any other.",
    )


def set_aside(text: str) -> Reason:
    """Return the reason of a job that the core rejected."""
    return Reason(
        code=ReasonCode.SET_ASIDE.value,
        text=text,
        numbers={},
        remedy="Cancel it and send it again with another size. Report it to an administrator.",
    )


def kept_off(reason: Reason, node: str, attempt: int, message: str | None, for_s: float) -> Reason:
    """Return a wait reason extended by a node that recently refused the job.

    Args:
        message: The node's message. ``for_s``: how long the job avoids the node.
    """
    text = (
        f"{node} did not accept attempt {attempt}, and this job avoids it for {exactly(for_s)} "
        f"from then on, longer each time: {(message or 'no reason given').rstrip('.')}."
    )
    return msgspec.structs.replace(
        reason,
        text=f"{reason.text} {text}",
        numbers={**reason.numbers, "left_out_s": for_s},
        remedy=f"{reason.remedy} {node} is tried again by itself.",
    )


def no_room(reason: Reason, message: str | None, for_s: float) -> Reason:
    """Return why a job waits whose pods a quota or limit of the cluster's namespace refused.

    Args:
        reason: The reason from the last pass.
        message: The quota with its numbers. ``for_s``: the pause before the next try.
    """
    return msgspec.structs.replace(
        reason,
        code=ReasonCode.NAMESPACE_QUOTA.value,
        text=f"The cluster rejects its pods: {(message or 'no reason given').rstrip('.')}.",
        numbers={"again_s": for_s},
        remedy=f"Wait until room becomes free: it is tried again every {exactly(for_s)}, later "
        "less often. Or send it with other --memory or --cpus, or ask an administrator of the "
        "cluster to change that limit.",
    )


def leaving(stop: StopIntent) -> Reason:
    """Return the reason of a job whose workers were sent a stop."""
    code, remedy = {
        Intent.PREEMPT: (ReasonCode.PREEMPTED, "Nothing to do: it resumes by itself."),
        Intent.PAUSE: (ReasonCode.PAUSING_FOR_USER, _how_to_resume(stop)),
        Intent.CANCEL: (ReasonCode.CANCELLING, "Nothing to do."),
    }[stop.kind]
    return Reason(code=code.value, text=stop.text, numbers={"grace_s": stop.grace_s}, remedy=remedy)


def _how_to_resume(stop: StopIntent) -> str:
    return is_paused(stop).remedy if stop.held else "Resume it to let it continue."
