"""Comparison of two configurations: the changes and the affected users."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields

from benchpool_scheduler.configuration import hanging, reservations, retries
from benchpool_scheduler.configuration.settings import (
    Configuration,
    PersonalProject,
    ProjectSettings,
)
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget
from benchpool_scheduler.phrases import count, exactly

_PROJECT_KEYS = {
    "parent": "parent",
    "quota": "guaranteed quota",
    "limit": "limit",
    "weight": "weight",
    "priority": "priority",
    "min_runtime_s": "protection after a start (s)",
    "cpus": "cpus",
    "memory_gib": "memory",
}


_IDLE_TIMES = {
    "tell_s": "A bench is shown as idle after",
    "ask_s": "The owner of an idle bench is asked after",
    "act_s": "An idle bench is reclaimed after",
    "keep_s": "Duration of one request to keep an idle bench",
}


def compare(old: Configuration, new: Configuration) -> list[str]:
    """Return a line for each change, or an empty list.

    >>> from benchpool_scheduler.configuration.loader import load
    >>> before = load("{version: 1, projects: [{name: a, quota: 2, members: [ann]}]}")
    >>> after = load("{version: 1, projects: [{name: a, quota: 3, members: [ann, joe]}]}")
    >>> for line in compare(before, after): print(line)
    Project a (ann, joe): guaranteed quota 2 → 3.
    Project a: joe may use it now.
    """
    return [
        *_build(old, new),
        *_projects(old, new),
        *_pools(old, new),
        *_topology(old, new),
        *_policy(old, new),
        *_budgets(old, new),
        *_retention(old, new),
        *_prices(old, new),
        *_gpu_hours(old, new),
        *_idle_benches(old, new),
        *_retries(old, new),
        *_hanging(old, new),
        *_reservations(old, new),
    ]


def _build(old: Configuration, new: Configuration) -> Iterable[str]:
    was, now = old.build, new.build
    if was.default != now.default:
        change = _gpus(was.default, now.default)
        yield f"Default build quota of users: {change}."
    yield from _quotas("group", was.groups, now.groups)
    yield from _quotas("user", was.users, now.users)
    if was.reserve != now.reserve:
        yield f"GPUs set aside for benches: {_reserve(was.reserve)} → {_reserve(now.reserve)}."
    if was.oversubscribe != now.oversubscribe:
        yield f"Benches may be promised more GPUs than exist: {_yes(now.oversubscribe)}."
    if was.lend_idle != now.lend_idle:
        yield f"Idle bench GPUs are lent to jobs: {_yes(now.lend_idle)}."
    if was.parking != now.parking:
        yield f"Benches may be parked: {_yes(now.parking)}."


def _quotas(kind: str, was: Mapping[str, int], now: Mapping[str, int]) -> Iterable[str]:
    for name in sorted(was.keys() | now.keys()):
        if was.get(name) != now.get(name):
            yield f"Build quota of {kind} {name}: {_gpus(was.get(name), now.get(name))}."


def _gpus(was: int | None, now: int | None) -> str:
    """Return the change from one quota to another; None is not set.

    >>> _gpus(1, 2), _gpus(None, 1), _gpus(1, None)
    ('1 → 2 GPUs', 'not set → 1 GPU', '1 GPU → not set')
    """
    if now is None:
        return f"{count(was or 0, 'GPU')} → not set"
    return f"{'not set' if was is None else was} → {count(now, 'GPU')}"


def _projects(old: Configuration, new: Configuration) -> Iterable[str]:
    was = {p.name: p for p in old.projects}
    now = {p.name: p for p in new.projects}
    for name, gone in was.items():
        if name not in now:
            yield f"Project {name} ({_people(gone)}) is removed; its jobs no longer start."
    for name, settings in now.items():
        if name in was:
            yield from _project(was[name], settings)
        else:
            quota = _value(settings.project.quota, "quota")
            yield f"Project {name} ({_people(settings)}) is added, guaranteed quota {quota}."
            if settings.gpu_hours.bounds:
                yield f"Project {name}: monthly budget {_hours(settings.gpu_hours)}."
            if settings.personal_projects is not None:
                yield f"Project {name}: {_each(settings.personal_projects)}."


def _project(was: ProjectSettings, now: ProjectSettings) -> Iterable[str]:
    for key, words in _PROJECT_KEYS.items():
        before, after = getattr(was.project, key), getattr(now.project, key)
        if before != after:
            change = f"{_value(before, key)} → {_value(after, key)}"
            yield f"Project {now.name} ({_people(now)}): {words} {change}."
    if was.gpu_hours != now.gpu_hours:
        change = f"{_hours(was.gpu_hours)} → {_hours(now.gpu_hours)}"
        yield f"Project {now.name} ({_people(now)}): monthly budget {change}."
    if was.personal_projects != now.personal_projects:
        before, after = _each(was.personal_projects), _each(now.personal_projects)
        yield f"Project {now.name} ({_people(now)}): {before} → {after}."
    for person in sorted(set(now.members) - set(was.members)):
        yield f"Project {now.name}: {person} may use it now."
    for person in sorted(set(was.members) - set(now.members)):
        yield f"Project {now.name}: {person} may no longer use it."
    for person in sorted(set(now.leads) - set(was.leads)):
        yield f"Project {now.name}: {person} is a project lead now."
    for person in sorted(set(was.leads) - set(now.leads)):
        yield f"Project {now.name}: {person} is no longer a project lead."


def _pools(old: Configuration, new: Configuration) -> Iterable[str]:
    was = {p.name: p for p in old.pools}
    now = {p.name: p for p in new.pools}
    for name in sorted(was.keys() - now.keys()):
        yield f"Pool {name} is removed."
    for name in sorted(now.keys() - was.keys()):
        yield f"Pool {name} is added with purpose {' and '.join(sorted(now[name].purpose))}."
    for name in sorted(now.keys() & was.keys()):
        if was[name] != now[name]:
            yield f"Pool {name} changes; its purpose is {' and '.join(sorted(now[name].purpose))}."


def _topology(old: Configuration, new: Configuration) -> Iterable[str]:
    if old.topology != new.topology:
        was, now = (" > ".join(level.label for level in it.topology) or "none" for it in (old, new))
        yield f"Topology levels, widest first: {was} → {now}."


def _policy(old: Configuration, new: Configuration) -> Iterable[str]:
    if old.oversubscribe != new.oversubscribe:
        yield f"Projects may be promised more GPUs than exist: {_yes(new.oversubscribe)}."
    for field in fields(new.policy):
        before, after = getattr(old.policy, field.name), getattr(new.policy, field.name)
        if before != after:
            yield f"Policy: {field.name} {before:g} → {after:g}."


def _budgets(old: Configuration, new: Configuration) -> Iterable[str]:
    for field in fields(new.budgets):
        before, after = getattr(old.budgets, field.name), getattr(new.budgets, field.name)
        if before != after:
            was, now = ("no limit" if it is None else it for it in (before, after))
            yield f"Budget of each user: {field.name} {was} → {now}."


def _retention(old: Configuration, new: Configuration) -> Iterable[str]:
    for field in fields(new.retention):
        before, after = getattr(old.retention, field.name), getattr(new.retention, field.name)
        if before != after:
            was, now = ("as ended_days" if it is None else f"{it:g}" for it in (before, after))
            yield f"Retention: {field.name} {was} → {now}."


def _prices(old: Configuration, new: Configuration) -> Iterable[str]:
    was, now = old.prices, new.prices
    if was.currency != now.currency:
        yield f"Currency of prices: {was.currency or 'none'} → {now.currency or 'none'}."
    for model in dict.fromkeys((*was.gpu_hour, *now.gpu_hour)):
        before, after = was.gpu_hour.get(model), now.gpu_hour.get(model)
        if before != after:
            prices = ("none" if it is None else f"{it:g}" for it in (before, after))
            yield f"Price of a GPU-hour of {model}: {' → '.join(prices)}."


def _gpu_hours(old: Configuration, new: Configuration) -> Iterable[str]:
    was, now = old.gpu_hours, new.gpu_hours
    if was.time_zone != now.time_zone:
        yield f"Time zone of monthly budgets: {was.time_zone} → {now.time_zone}."
    if was.default != now.default:
        change = f"{_hours(was.default)} → {_hours(now.default)}"
        yield f"Default monthly budget of users: {change}."
    for user in sorted(was.users.keys() | now.users.keys()):
        if was.of(user) != now.of(user):
            change = f"{_hours(was.of(user))} → {_hours(now.of(user))}"
            yield f"Monthly budget of user {user}: {change}."


def _idle_benches(old: Configuration, new: Configuration) -> Iterable[str]:
    was, now = old.idle_benches, new.idle_benches
    if was.act != now.act:
        yield f"Idle benches are reclaimed: {_yes(now.act)}."
    for key, words in _IDLE_TIMES.items():
        before, after = getattr(was, key), getattr(now, key)
        if before != after:
            yield f"{words}: {exactly(before)} → {exactly(after)}."
    if was.keeps_a_day != now.keeps_a_day:
        times = f"{was.keeps_a_day} → {now.keeps_a_day}"
        yield f"Requests of an owner to keep an idle bench in 24 hours: {times}."
    for one in (it for it in was.exempt if it not in now.exempt):
        yield f"Idle benches of {one.who} are no longer exempt (they were until {one.until})."
    for one in (it for it in now.exempt if it not in was.exempt):
        yield f"Idle benches of {one.who} are exempt until the end of {one.until}."


def _retries(old: Configuration, new: Configuration) -> Iterable[str]:
    before, after = retries.rules(old.retries), retries.rules(new.retries)
    for cause in (cause for cause in before if before[cause] != after[cause]):
        was, now = _retry(*before[cause]), _retry(*after[cause])
        yield f"Retries of jobs after {cause}: {was} → {now}."


def _hanging(old: Configuration, new: Configuration) -> Iterable[str]:
    if old.hanging != new.hanging:
        was, now = hanging.in_words(old.hanging), hanging.in_words(new.hanging)
        yield f"Hanging jobs: {was} → {now}."


def _retry(times: int, pause_s: float, avoid_s: float) -> str:
    """Return a retry rule in words.

    >>> _retry(2, 30.0, 3600.0), _retry(1, 0.0, 0.0), _retry(0, 30.0, 0.0)
    ('2 times after 30 s, avoiding that node for 1 h', '1 time', 'never')
    """
    pause = f" after {exactly(pause_s)}" if pause_s else ""
    avoid = f", avoiding that node for {exactly(avoid_s)}" if avoid_s else ""
    return f"{count(times, 'time')}{pause}{avoid}" if times else "never"


def _reservations(old: Configuration, new: Configuration) -> Iterable[str]:
    was, now = ({it.name: it for it in each.reservations} for each in (old, new))
    zone = new.gpu_hours.time_zone
    for name in sorted(was.keys() | now.keys()):
        if name not in now:
            yield f"Reservation {name} is removed."
        elif was.get(name) != now[name]:
            word = "is added" if name not in was else "changes"
            yield f"Reservation {name} {word}: {reservations.in_words(now[name], zone)}."


def _hours(budget: HourBudget) -> str:
    """Return a budget in words.

    >>> _hours(HourBudget(soft=100, hard=200)), _hours(HourBudget())
    ('soft 100, hard 200 GPU-hours', 'none')
    """
    parts = (("soft", budget.soft), ("hard", budget.hard))
    text = ", ".join(f"{word} {hours:g}" for word, hours in parts if hours is not None)
    return f"{text} GPU-hours" if text else "none"


def _each(each: PersonalProject | None) -> str:
    if each is None:
        return "no personal projects"
    found = [f"quota {_value(each.quota, 'quota')}", f"limit {_value(each.limit, 'limit')}"]
    found.append(f"weight {each.weight:g}")
    if each.gpu_hours != HourBudget():
        found.append(f"monthly {_hours(each.gpu_hours)}")
    return f"a personal project for each member ({', '.join(found)})"


def _people(settings: ProjectSettings) -> str:
    return ", ".join(settings.members) or "no members"


def _value(value: object, key: str) -> str:
    if value is None:
        return {"quota": "unlimited", "parent": "none"}.get(key, "not set")
    return str(value)


def _reserve(value: int | None) -> str:
    return "auto" if value is None else str(value)


def _yes(value: bool) -> str:
    return "yes" if value else "no"
