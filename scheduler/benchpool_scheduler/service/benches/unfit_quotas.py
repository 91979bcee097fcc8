"""Refusal of build quotas that exceed the pool (R3), with the setting that promises most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from benchpool_scheduler.configuration import Build, line_of
from benchpool_scheduler.core.benches.quotas import keep_free
from benchpool_scheduler.errors import InvalidInput, Number
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.observed import users
from benchpool_scheduler.service.observed.observations import Observations

Keys = tuple[str, ...]


def refuse_sum(seen: Observations) -> None:
    """Refuse build quotas whose sum exceeds the pool (R3). Errors: InvalidInput."""
    build = seen.configuration.build
    try:
        keep_free(
            [seen.users.quota_sum],
            reserve=build.reserve,
            leased=0,
            gpus=seen.inventory.build_gpus,
            oversubscribe=build.oversubscribe,
        )
    except InvalidInput as error:
        keys, value = _most(seen)
        rest = error.message.rstrip(".")
        raise _wrong(seen, keys, f"{value}; {rest}.", error.numbers) from None


def refuse_singles(seen: Observations) -> None:
    """Refuse a quota that exceeds the pool, even if it applies to no user yet.

    Errors: InvalidInput.
    """
    build, gpus = seen.configuration.build, seen.inventory.build_gpus
    if build.oversubscribe:
        return
    for keys, value in _singles(build):
        if value > gpus:
            numbers = {"reserved": value, "gpus": gpus}
            has = f"the pool has {count(gpus, 'GPU')} for benches"
            advice = "lower it, or set build.oversubscribe to true"
            raise _wrong(seen, keys, f"{value} and {has}; {advice}.", numbers)


def _singles(build: Build) -> Iterator[tuple[Keys, int]]:
    yield ("build", "default"), build.default
    for kind, quotas in (("groups", build.groups), ("users", build.users)):
        for name, value in quotas.items():
            yield ("build", kind, name), value


def _most(seen: Observations) -> tuple[Keys, str]:
    """Return the key that promises most GPUs, and its value with the resulting total."""
    configuration, known = seen.configuration, seen.users.by_name
    build = configuration.build
    if build.reserve is not None and build.reserve > seen.users.quota_sum:
        return ("build", "reserve"), str(build.reserve)
    groups = {name: one.groups for name, one in known.items() if one.may_start_servers}
    promised: Counter[Keys] = Counter()
    people: Counter[Keys] = Counter()
    for name in groups.keys() | build.users.keys():
        found = users.quota_of(configuration, name, groups.get(name, {}))
        keys = _keys(found.rule)
        promised[keys] += found.quota
        people[keys] += 1
    keys = max(promised, key=lambda each: (promised[each], each))
    if keys[1] == "users":
        return keys, str(promised[keys])
    return keys, f"{promised[keys]} for {count(people[keys], 'user')} together"


def _keys(rule: str) -> Keys:
    """Return the key under which the rule of a quota is written (``EffectiveQuota.rule``)."""
    kind, _, name = rule.partition(" ")
    if kind in ("user", "group"):
        return "build", f"{kind}s", name
    return ("build", "default") if kind == "default" else ("build", rule)


def _wrong(
    seen: Observations, keys: Keys, what: str, numbers: Mapping[str, Number]
) -> InvalidInput:
    """Return the error at the line of a key. A group property is set in the Hub."""
    configuration = seen.configuration
    line = line_of(configuration.text, *keys)
    place = configuration.source if line is None else f"{configuration.source}, line {line}"
    named = f"the {keys[1]} (Hub's admin page, Groups)" if " " in keys[1] else ".".join(keys)
    return InvalidInput(
        f"{place}: {named} is {what}",
        code="build-oversubscribed",
        field="build",
        numbers={**numbers, "line": line},
    )
