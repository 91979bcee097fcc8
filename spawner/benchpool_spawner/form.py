"""Form for starting a server: the quota, its holders, and the GPUs that are free now.

``model`` decides the content and ``render`` writes it. Both are pure. The template escapes names.
Each choice that is not possible now shows its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import jinja2

from benchpool_scheduler.contract import BuildQuota, GpuState, Status
from benchpool_scheduler.phrases import count, duration, is_are, server_called
from benchpool_spawner.lease_client import Advice
from benchpool_spawner.options import ServerOptions, WhenBusy

LEAST_CHOICES = 2
"""Minimum of the largest choice. The form always shows 0, 1 and 2 GPUs, even with a quota of 0."""

MOST_CHOICES = 16

FREE = (GpuState.BUILD_FREE, GpuState.FREE)
"""States in which a bench gets a GPU immediately."""


@dataclass(frozen=True, slots=True)
class Server:
    """Server of the user, as known to the Hub. The default server's name is empty."""

    name: str
    last_activity: datetime | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """Number of GPUs to choose. ``why_not`` is empty if it can be chosen.

    ``hint`` explains why the GPUs are not available immediately.
    """

    gpus: int
    chosen: bool
    why_not: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ServerHolding:
    """Server that holds GPUs of the quota."""

    server: str
    gpus: int
    idle: str

    @property
    def title(self) -> str:
        """Name of the server as displayed."""
        return server_called(self.server, "your")


@dataclass(frozen=True, slots=True)
class Model:
    """Content of the form.

    Attributes:
        free: GPUs of the quota that no server holds.
        at_once: Number of free GPUs that a start gets now. The others are lent, or too few are on
            one machine. Choices and models depend on it.
    """

    user: str
    choices: tuple[Choice, ...]
    quota: int | None
    rule: str
    free: int
    at_once: int
    held: tuple[ServerHolding, ...]
    models: tuple[tuple[str, int], ...]
    chosen_models: tuple[str, ...]
    simulated: bool
    problem: str | None
    as_profile: bool | None = None
    when_busy: WhenBusy = "wait"

    @property
    def may_wait(self) -> bool:
        """Whether a start may request GPUs, and so may have to wait for them."""
        return bool(self.as_profile is not None or any(one.gpus for one in self.possible))

    @property
    def possible(self) -> tuple[Choice, ...]:
        """Choices that can be selected."""
        return tuple(one for one in self.choices if not one.why_not)


def model(
    user: str,
    advice: Advice,
    remembered: ServerOptions,
    servers: Mapping[str, Server],
    now: datetime | None = None,
    *,
    as_profile: bool | None = None,
    when_busy: WhenBusy = "wait",
) -> Model:
    """Return the content of the form for one user.

    Args:
        user: Owner of the server. An administrator may open another user's form.
        advice: Quota and pool. None if the scheduler does not answer.
        remembered: Options of the last start. They are preselected if possible.
        servers: Servers of the user by name.
        now: Reference time for idle times.
        as_profile: Whether a profile determines the number of GPUs. None without profiles.
        when_busy: Default action if no GPU is free.
    """
    build = advice.quota.build if advice.quota else None
    now = now or datetime.now(UTC)
    free = build.free if build else 0
    at_once = free_at_once(free, advice.status)
    return Model(
        user=user,
        choices=_choices(build, remembered.gpus, advice, at_once, none=bool(as_profile)),
        quota=build.quota if build else None,
        rule=build.rule if build else "",
        free=free,
        at_once=at_once,
        held=_held(build, servers, now),
        models=_models(advice.status, at_once),
        chosen_models=remembered.gpu_models,
        simulated=bool(advice.status and advice.status.simulated),
        problem=advice.problem,
        as_profile=as_profile,
        when_busy=remembered.when_busy or when_busy,
    )


def render(shown: Model) -> str:
    """Return the HTML of the form. The Hub adds the form element and the start button."""
    text: str = _environment().get_template("spawn_form.html").render(form=shown, gpus=gpus)
    return text


def gpus(number: int) -> str:
    """Return a number of GPUs in words.

    >>> gpus(0), gpus(1), gpus(2)
    ('no GPU', '1 GPU', '2 GPUs')
    """
    return "no GPU" if number == 0 else count(number, "GPU")


def profile(asked: ServerOptions) -> str:
    """Return the text that the Hub's admin page shows beside a server.

    >>> profile(ServerOptions(2, ("A100",)))
    '2 GPUs, A100'
    """
    return ", ".join([gpus(asked.gpus), *asked.gpu_models])


def _choices(
    build: BuildQuota | None, last: int, advice: Advice, at_once: int, *, none: bool
) -> tuple[Choice, ...]:
    most = min(MOST_CHOICES, max(LEAST_CHOICES, build.quota if build else 0))
    reasons = [_why_not(number, build, advice.problem) for number in range(most + 1)]
    possible = [number for number, reason in enumerate(reasons) if not reason]
    chosen = last if last in possible else max(n for n in possible if n <= max(last, 0))
    return tuple(
        Choice(n, not none and n == chosen, reason, "" if reason else _hint(n, at_once))
        for n, reason in enumerate(reasons)
    )


def free_at_once(free: int, status: Status | None) -> int:
    """Return the number of free GPUs of a quota that a start gets now, on one machine.

    >>> free_at_once(2, None)
    2
    """
    if status is None or not status.gpus:
        return free
    here = Counter(gpu.node for gpu in status.gpus if gpu.state in FREE)
    return min(free, max(here.values(), default=0))


def _hint(number: int, at_once: int) -> str:
    if number <= at_once:
        return ""
    more = number - at_once
    which = f"{more} of them {is_are(more)} " if at_once else ""
    return f"{which}lent or in use now, so the start waits for them"


def _why_not(number: int, build: BuildQuota | None, problem: str | None) -> str:
    if number == 0:
        return ""
    if build is None:
        return problem or "The scheduler does not answer."
    if number > build.quota:
        return f"exceeds your build quota of {build.quota}"
    if number > build.free:
        held = build.quota - build.free
        how = "held or parked" if build.lent else "held"
        return f"{held} of your {build.quota} {is_are(held)} already {how}"
    return ""


def _held(
    build: BuildQuota | None, servers: Mapping[str, Server], now: datetime
) -> tuple[ServerHolding, ...]:
    rows = []
    for one in build.held if build else ():
        server = servers.get(one.server)
        last = server.last_activity if server else None
        rows.append(ServerHolding(one.server, len(one.gpus), _idle(last, now)))
    return tuple(rows)


def _idle(last: datetime | None, now: datetime) -> str:
    if last is None:
        return ""
    # JupyterHub stores naive times in UTC.
    aware = last if last.tzinfo else last.replace(tzinfo=UTC)
    seconds = (now - aware).total_seconds()
    return "in use" if seconds < 300 else f"idle {duration(seconds)}"


def _models(status: Status | None, at_once: int) -> tuple[tuple[str, int], ...]:
    """Return the GPU models of the pool, each with the GPUs that this user's start gets now."""
    if status is None:
        return ()
    counts = Counter({gpu.model: 0 for gpu in status.gpus})
    counts.update(gpu.model for gpu in status.gpus if gpu.state in FREE)
    return tuple((name, min(free, at_once)) for name, free in sorted(counts.items()))


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("benchpool_spawner", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
