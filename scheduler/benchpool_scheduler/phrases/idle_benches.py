"""Texts on idle benches: on screens, in notifications, and in the note in the folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from benchpool_scheduler.phrases.numbers import count, percent
from benchpool_scheduler.phrases.times import duration, exactly

IDLE_NOTE_FILE = "benchpool-idle-bench.md"
"""File name of the note, in the folder in which the notebook server starts."""

WHAT_IS_IDLE = (
    "no kernel ran on its GPUs, no cell was executed, no kernel was busy and no program ran in a "
    "terminal"
)


def idle_note(
    *,
    at: datetime,
    user: str,
    server: str,
    gpus: int,
    idle_s: float,
    coverage: float,
    stopped: bool,
    asked: bool = False,
) -> str:
    """Return the note for the folder of a bench that was released.

    Args:
        coverage: Measured share of the idle time, 0 to 1.
        stopped: Whether the whole server was stopped; otherwise its kernels lost their GPUs.
        asked: Whether its owner requested it.

    >>> print(idle_note(at=datetime(2026, 11, 23, 14, 5), user="ann", server="", gpus=1,
    ...                 idle_s=3600, coverage=0.98, stopped=True).splitlines()[2])
    On 23 November 2026 at 14:05 the default server was stopped, and its 1 GPU was reclaimed.
    """
    when = f"{at.day} {at:%B %Y} at {_clock(at)}"
    whose = f"the {_bench(server)}"
    its = count(gpus, "GPU")
    was = "was" if gpus == 1 else "were"
    done = (
        f"{whose} was stopped, and its {its} {was} reclaimed."
        if stopped
        else f"the {its} of {whose} {was} reclaimed, and its kernels were restarted without GPUs."
    )
    why = (
        f"{user} requested it."
        if asked
        else f"It had been idle for {duration(idle_s)}: {WHAT_IS_IDLE}. {percent(coverage)} of "
        "this time was measured."
    )
    back = (
        "Start the server again from the Hub's page; it gets GPUs as they become free."
        if stopped
        else "To work on a GPU again, stop this server on the Hub's page and start it with a GPU."
    )
    return "\n".join(
        [
            "# The GPUs of this bench were reclaimed",
            "",
            f"On {when} {done}",
            "",
            f"- Why: {why}",
            "- Kept: all files, notebooks as they were last saved.",
            "- Lost: the variables of the running kernels.",
            f"- What to do: {back} Send long-running work to the training pool: "
            "*Send to training*.",
            "",
        ]
    )


def bench_notification(
    server: str, idle_s: float, acts_at: datetime, *, stops: bool, parks: bool = False
) -> str:
    """Return the notification for the owner of an idle bench.

    >>> bench_notification("", 900, datetime(2026, 11, 23, 14, 5), stops=True)
    'Your default server has been idle for 15 min: it is stopped at 14:05 if it stays idle.'
    """
    what = "it is stopped" if stops else ACTS["park" if parks else "release"]
    return (
        f"Your {_bench(server)} has been idle for {duration(idle_s)}: {what} at "
        f"{_clock(acts_at)} if it stays idle."
    )


def bench_due(server: str, idle_s: float, *, stops: bool) -> str:
    """Return the notification for the owner of a bench that is being released.

    >>> bench_due("", 3600, stops=False)
    'Your default server was idle for 1 h: its GPUs are reclaimed now. A note in its folder lists \
what is kept.'
    """
    what = "it is stopped" if stops else "its GPUs are reclaimed"
    return (
        f"Your {_bench(server)} was idle for {duration(idle_s)}: {what} now. A note in "
        "its folder lists what is kept."
    )


def bench_parks(server: str, idle_s: float) -> str:
    """Return the notification for the owner of a bench that is being parked.

    >>> bench_parks("", 3600)
    'Your default server was idle for 1 h: its GPU is being lent, and its kernel keeps its GPU \
memory in the memory of the machine. To get the GPU back, run a cell.'
    """
    return (
        f"Your {_bench(server)} was idle for {duration(idle_s)}: its GPU is being lent, and its "
        "kernel keeps its GPU memory in the memory of the machine. To get the GPU back, run a "
        "cell."
    )


def bench_kept(until: datetime, keeps_left: int, *, rule: bool) -> str:
    """Return the confirmation for an owner who keeps a bench.

    Args:
        rule: Whether the site releases idle benches.

    >>> print(bench_kept(datetime(2026, 11, 23, 14, 5), 1, rule=True))
    Kept until 2026-11-23 14:05: it is not reclaimed for being idle before then. You can keep it 1 \
more time within 24 hours.
    >>> print(bench_kept(datetime(2026, 11, 23, 14, 5), 0, rule=False))
    Kept until 2026-11-23 14:05. Idle benches are not reclaimed here; only their owners release \
them.
    """
    kept = f"Kept until {_day_and_time(until)}"
    if not rule:
        return f"{kept}. Idle benches are not reclaimed here; only their owners release them."
    more = f"{keeps_left} more time{'' if keeps_left == 1 else 's'}" if keeps_left else "no more"
    return (
        f"{kept}: it is not reclaimed for being idle before then. You can keep it {more} within "
        "24 hours."
    )


def bench_goes(server: str, gpus: int, *, stops: bool) -> str:
    """Return the next step and the losses of a bench that is being released.

    >>> print(bench_goes("lab", 2, stops=True))
    The Hub stops your server “lab”, which first has half a minute to leave a note in its \
folder. Lost: the variables of its kernels, programs in terminals, unsaved changes. \
Files and notebooks stay as they were last saved.
    >>> print(bench_goes("", 1, stops=False))
    The 1 GPU of your default server is released: its kernels are restarted without it, idle \
terminals are closed, and the server keeps running. Lost: the variables of its kernels. Files \
and open notebooks stay. If this takes more than a minute, the server is stopped.
    """
    its, them = count(gpus, "GPU"), "it" if gpus == 1 else "them"
    whose = f"your {_bench(server)}"
    if stops:
        return (
            f"The Hub stops {whose}, which first has half a minute to leave a note in its "
            "folder. Lost: the variables of its kernels, programs in terminals, unsaved "
            "changes. Files and notebooks stay as they were last saved."
        )
    return (
        f"The {its} of {whose} {'is' if gpus == 1 else 'are'} released: its kernels are "
        f"restarted without {them}, idle terminals are closed, and the server keeps running. "
        "Lost: the variables of its kernels. Files and open notebooks stay. If this takes more "
        "than a minute, the server is stopped."
    )


def keeps_used_up(keeps: int, keep_s: float) -> str:
    """Return why a bench cannot be kept again.

    >>> keeps_used_up(2, 3600)
    'This bench was kept 2 times in 24 hours, for 1 h each, which is the limit. Run something \
on it, or release it.'
    """
    return (
        f"This bench was kept {count(keeps, 'time')} in 24 hours, for {exactly(keep_s)} each, "
        "which is the limit. Run something on it, or release it."
    )


def _bench(server: str) -> str:
    return f"server “{server}”" if server else "default server"


def processes(pids: Sequence[int]) -> str:
    """Return the number of remaining processes with their ids and a verb.

    >>> processes([17]), processes([17, 18])
    ('1 process is still (17)', '2 processes are still (17, 18)')
    """
    shown = ", ".join(map(str, pids[:5]))
    many = "1 process is" if len(pids) == 1 else f"{len(pids)} processes are"
    return f"{many} still ({shown})"


class SeenBench(Protocol):
    """Bench with the fields of the wire contract."""

    @property
    def step(self) -> str: ...
    @property
    def idle_s(self) -> float: ...
    @property
    def kept_until(self) -> datetime | None: ...
    @property
    def exempt_until(self) -> datetime | None: ...
    @property
    def act(self) -> str: ...
    @property
    def parks(self) -> bool: ...
    @property
    def next(self) -> str | None: ...
    @property
    def next_at(self) -> datetime | None: ...


STEPS = {
    "used": "in use",
    "cpu-phase": "busy on CPUs only",
    "doubt": "not known: too little was measured or reported",
}
NEXT = {"told": "its owner is notified", "asked": "its owner is asked"}
ACTS = {
    "stop": "it is stopped",
    "release": "its GPUs are reclaimed",
    "park": "its GPU is parked, or reclaimed where parking is impossible,",
}


def bench_state(bench: SeenBench) -> str:
    """Return the state of a bench, with the length of its idle time."""
    if bench.exempt_until is not None:
        return f"exempt until {_day_and_time(bench.exempt_until)}"
    if bench.kept_until is not None:
        return f"kept by its owner until {_day_and_time(bench.kept_until)}"
    known = STEPS.get(str(bench.step))
    if known is not None:
        return known
    given = ", being reclaimed" if bench.step == "due" else ""
    return f"idle for {duration(bench.idle_s)}{given}"


def bench_next(bench: SeenBench) -> str:
    """Return the next step of the ladder with its time; empty for none."""
    if bench.next_at is None:
        return ""
    return f"{bench_coming(bench)} at {_day_and_time(bench.next_at)}"


def bench_coming(bench: SeenBench) -> str:
    """Return the next step of the ladder without its time; empty for none."""
    if bench.next is None:
        return ""
    return NEXT.get(str(bench.next)) or ACTS["park" if bench.parks else str(bench.act)]


def _day_and_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} {at:%Z}".strip()


def _clock(at: datetime) -> str:
    """Return the time of day, with its time zone if known.

    >>> from datetime import UTC
    >>> _clock(datetime(2026, 11, 23, 14, 5)), _clock(datetime(2026, 11, 23, 14, 5, tzinfo=UTC))
    ('14:05', '14:05 UTC')
    """
    return f"{at:%H:%M %Z}".strip()
