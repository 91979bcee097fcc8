"""Loader of ``benchpool.yaml`` (formats, section 6) into a ``Configuration``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, cast

from yaml import MappingNode

from benchpool_scheduler.configuration import (
    former_keys,
    gpu_hours,
    hanging,
    idle_benches,
    reservations,
    retries,
)
from benchpool_scheduler.configuration.former_keys import renamed
from benchpool_scheduler.configuration.nodes import Item, compose, nearest
from benchpool_scheduler.configuration.settings import (
    EVERYBODY,
    Budgets,
    Build,
    Configuration,
    IdleRule,
    Level,
    NodePool,
    PersonalProject,
    Prices,
    ProjectSettings,
    Retention,
    UserHours,
)
from benchpool_scheduler.configuration.tree import check_tree, tree_warnings
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget
from benchpool_scheduler.core.lifecycle.hangs import HangRule
from benchpool_scheduler.core.lifecycle.retries import RetryRules
from benchpool_scheduler.core.model import Bound, Policy, Project, ProjectName
from benchpool_scheduler.errors import InvalidInput

VERSION = 1
SECTIONS = (
    *("version", "build", "projects", "pools", "topology", "policy", "budgets", "retention"),
    *("prices", "gpu_hours", "idle_benches", "retries", "hanging", "reservations"),
)
BUILD = ("default", "groups", "users", "reserve", "oversubscribe", "lend_idle", "parking")
PROJECT = (
    *("name", "parent", "quota", "limit", "weight", "priority", "cpus", "memory_gib"),
    *("min_runtime_s", "used_gpu_s", "members", "leads", "personal_projects", "gpu_hours"),
)
PERSONAL = ("quota", "limit", "weight", "gpu_hours")
POLICY = tuple(field.name for field in fields(Policy))
OVERSUBSCRIBE = "oversubscribe"
BUDGETS = tuple(field.name for field in fields(Budgets))
RETENTION = tuple(field.name for field in fields(Retention))
PRICES = tuple(field.name for field in fields(Prices))
KEYS = frozenset(
    (
        *(*SECTIONS, *BUILD, *PROJECT, *POLICY, *BUDGETS, *RETENTION, *PRICES),
        *(*gpu_hours.SECTION, *idle_benches.SECTION, *retries.SECTION, *retries.RULE),
        *hanging.SECTION,
    )
)
"""All keys that a configuration may have, except those of lists below them."""
MOST_GPUS = 1_000_000
MOST_LEVELS = 8
MOST_PRICE = 1e6
MOST_DAYS, MOST_JOBS = 36_500, 10_000_000


def load(text: str, source: str = "benchpool.yaml") -> Configuration:
    """Read and check a configuration.

    Args:
        text: YAML text.
        source: Name of the file in errors.

    Errors: InvalidInput ``configuration`` with file, line, key and the nearest known key.

    >>> load("version: 1\\nprojects: [{name: susan, quota: 2, members: [susan]}]").projects[0].name
    'susan'
    >>> load("version: 1\\nbuild: {defualt: 1}")
    Traceback (most recent call last):
    ...
    benchpool_scheduler.errors.InvalidInput: benchpool.yaml, line 2: build.defualt is not a known \
key; did you mean `default`?
    """
    document = compose(text, source)
    if document is None:
        raise InvalidInput(
            f"{source} is empty; it must begin with `version: {VERSION}`.", code="configuration"
        )
    return read(document, text)


def read(document: Item, text: str) -> Configuration:
    """Check a document and return its configuration; ``text`` is the text to keep with it.

    Errors: as ``load``.
    """
    top = document.entries(SECTIONS)
    _check_version(document, top)
    projects = _projects(top["projects"]) if _given(top, "projects") else ()
    build = _build(top["build"]) if _given(top, "build") else Build()
    hours = gpu_hours.of_users(top["gpu_hours"]) if _given(top, "gpu_hours") else UserHours()
    rule = idle_benches.rule(top["idle_benches"]) if _given(top, "idle_benches") else IdleRule()
    found = Configuration(
        build=build,
        projects=projects,
        pools=_pools(top["pools"]) if _given(top, "pools") else (NodePool("default"),),
        policy=_policy(top["policy"]) if _given(top, "policy") else Policy(),
        oversubscribe=_oversubscribe(top["policy"]) if _given(top, "policy") else False,
        topology=_topology(top["topology"]) if _given(top, "topology") else (),
        budgets=_budgets(top["budgets"]) if _given(top, "budgets") else Budgets(),
        retention=_retention(top["retention"]) if _given(top, "retention") else Retention(),
        prices=_prices(top["prices"]) if _given(top, "prices") else Prices(),
        gpu_hours=hours,
        idle_benches=rule,
        retries=retries.policy(top["retries"]) if _given(top, "retries") else RetryRules(),
        hanging=hanging.rule(top["hanging"]) if _given(top, "hanging") else HangRule(),
        reservations=reservations.entries(top["reservations"], projects, hours.time_zone)
        if _given(top, "reservations")
        else (),
        text=text,
        source=document.source,
    )
    former = former_keys.warnings(top["projects"].items()) if _given(top, "projects") else ()
    warnings = (*tree_warnings(found.projects), *idle_benches.warnings(rule), *former)
    return replace(found, warnings=warnings)


def line_of(text: str, *keys: str) -> int | None:
    r"""Return the line of a value, or of its nearest existing parent; None for an empty text.

    >>> line_of("version: 1\nbuild:\n  users:\n    susan: 9\n", "build", "users", "susan")
    4
    >>> line_of("version: 1\nbuild:\n  default: 1\n", "build", "users", "susan")
    3
    """
    item = compose(text, "")
    for key in keys:
        if item is None or not isinstance(item.node, MappingNode):
            break
        below = item.entries().get(key)
        if below is None:
            break
        item = below
    return None if item is None else item.line


def _given(entries: Mapping[str, Item], key: str) -> bool:
    return key in entries and not entries[key].is_null()


def _check_version(document: Item, top: Mapping[str, Item]) -> None:
    if "version" not in top:
        document.wrong(f"has no `version`; write `version: {VERSION}` on its first line.")
    if top["version"].scalar() != VERSION:
        top["version"].wrong(f"must be {VERSION}, the only version that this release knows.")


def _build(item: Item) -> Build:
    keys = item.entries(BUILD)
    build = Build(groups=_quotas(keys, "groups"), users=_quotas(keys, "users"))
    if _given(keys, "default"):
        build = replace(build, default=keys["default"].whole(most=MOST_GPUS))
    if _given(keys, "reserve") and not keys["reserve"].is_word("auto"):
        build = replace(build, reserve=_reserve(keys["reserve"]))
    if "oversubscribe" in keys:
        build = replace(build, oversubscribe=keys["oversubscribe"].flag())
    if "lend_idle" in keys:
        build = replace(build, lend_idle=keys["lend_idle"].flag())
    if "parking" in keys:
        build = replace(build, parking=keys["parking"].flag())
    return build


def _reserve(item: Item) -> int:
    if isinstance(item.scalar(), str):
        item.wrong("must be `auto` or a number of GPUs.")
    return item.whole(most=MOST_GPUS)


def _quotas(keys: Mapping[str, Item], key: str) -> dict[str, int]:
    if not _given(keys, key):
        return {}
    return {name: item.whole(most=MOST_GPUS) for name, item in keys[key].entries().items()}


def _projects(item: Item) -> tuple[ProjectSettings, ...]:
    places: list[Item] = []
    projects: list[ProjectSettings] = []
    for entry in item.items():
        places.append(entry)
        projects.append(_project(entry))
    check_tree(projects, places)
    return tuple(projects)


def _project(item: Item) -> ProjectSettings:
    keys = renamed(item.entries((*PROJECT, "each")))
    if not _given(keys, "name"):
        item.wrong("has no `name`.")
    project = Project(
        name=ProjectName(keys["name"].text()),
        parent=ProjectName(keys["parent"].text()) if _given(keys, "parent") else None,
        quota=_quota(keys["quota"]) if _given(keys, "quota") else 0,
        limit=keys["limit"].whole(most=MOST_GPUS) if _given(keys, "limit") else None,
        weight=keys["weight"].number() if _given(keys, "weight") else None,
        priority=keys["priority"].whole(-1_000_000) if _given(keys, "priority") else 0,
        cpus=_bound(keys["cpus"]) if _given(keys, "cpus") else Bound(),
        memory_gib=_bound(keys["memory_gib"]) if _given(keys, "memory_gib") else Bound(),
        min_runtime_s=keys["min_runtime_s"].number() if _given(keys, "min_runtime_s") else None,
        used_gpu_s=keys["used_gpu_s"].number() if _given(keys, "used_gpu_s") else 0.0,
    )
    return ProjectSettings(
        project,
        members=_people(keys, "members", EVERYBODY),
        leads=_people(keys, "leads"),
        line=item.line,
        personal_projects=_personal(keys["personal_projects"], keys)
        if _given(keys, "personal_projects")
        else None,
        gpu_hours=_hours(keys),
        sums=not _given(keys, "quota"),
    )


def _hours(keys: Mapping[str, Item]) -> HourBudget:
    return gpu_hours.budget(keys["gpu_hours"]) if _given(keys, "gpu_hours") else HourBudget()


def _personal(item: Item, project: Mapping[str, Item]) -> PersonalProject:
    if not _given(project, "members"):
        item.wrong(
            "needs `members`: a group as `group:NAME`, or `*` for users without another project."
        )
    keys = item.entries(PERSONAL)
    return PersonalProject(
        quota=_quota(keys["quota"]) if "quota" in keys else 0,
        limit=keys["limit"].whole(most=MOST_GPUS) if _given(keys, "limit") else None,
        weight=keys["weight"].number() if _given(keys, "weight") else 1,
        gpu_hours=_hours(keys),
    )


def _quota(item: Item) -> int | None:
    if item.is_word("unlimited"):
        return None
    if isinstance(item.scalar(), str):
        item.wrong("must be a number of GPUs or `unlimited`.")
    return item.whole(most=MOST_GPUS)


def _bound(item: Item) -> Bound:
    keys = item.entries(("quota", "limit", "weight"))
    unlimited = "quota" not in keys or keys["quota"].is_word("unlimited")
    return Bound(
        quota=None if unlimited else keys["quota"].number(),
        limit=keys["limit"].number() if _given(keys, "limit") else None,
        weight=keys["weight"].number() if _given(keys, "weight") else None,
    )


def _people(keys: Mapping[str, Item], key: str, *words: str) -> tuple[str, ...]:
    if not _given(keys, key):
        return ()
    return tuple(_person(item, words) for item in keys[key].items())


def _person(item: Item, words: Sequence[str]) -> str:
    text = item.text()
    if text == EVERYBODY and EVERYBODY not in words:
        item.wrong(f"cannot be {text!r}: only `members` may include all users.")
    kind, colon, name = text.partition(":")
    if colon and (kind != "group" or not name.strip()):
        item.wrong(f"is {text!r}; write a user's name, or `group:NAME` for a group.")
    return text


def _pools(item: Item) -> tuple[NodePool, ...]:
    pools: list[NodePool] = []
    for entry in item.items():
        pool = _pool(entry)
        if any(pool.name == other.name for other in pools):
            entry.wrong(f"has the name {pool.name!r} of another pool; names must be unique.")
        pools.append(pool)
    if not pools:
        item.wrong("is empty; omit the key for one pool that serves both.")
    return tuple(pools)


def _pool(item: Item) -> NodePool:
    keys = renamed(item.entries(("name", "nodes", "purpose", "serves")))
    if not _given(keys, "name"):
        item.wrong("has no `name`.")
    labels = keys["nodes"].entries() if _given(keys, "nodes") else {}
    return NodePool(
        name=keys["name"].text(),
        nodes={name: value.text(253) for name, value in labels.items()},
        purpose=_purpose(keys["purpose"]) if _given(keys, "purpose") else NodePool("").purpose,
    )


def _purpose(item: Item) -> frozenset[Literal["build", "train"]]:
    found: set[Literal["build", "train"]] = set()
    for entry in item.items():
        word = entry.text()
        if word not in ("build", "train"):
            entry.wrong(f"is {word!r}{nearest(word, ('build', 'train'))}")
        found.add(cast("Literal['build', 'train']", word))
    if not found:
        item.wrong("is empty; name build, train or both.")
    return frozenset(found)


def _topology(item: Item) -> tuple[Level, ...]:
    levels: dict[str, Level] = {}
    for entry in item.items():
        level = Level(entry.text(253))
        if not level.name or level.name == NODE_LEVEL:
            entry.wrong(
                f"is {level.label!r}; name a node label. Each node is already a level of its own."
            )
        if level.name in levels:
            entry.wrong(
                f"has the name {level.name!r}, as {levels[level.name].label!r} before it; the "
                "last part of the label is the name of a level and must be unique."
            )
        levels[level.name] = level
    if len(levels) > MOST_LEVELS:
        item.wrong(f"has {len(levels)} levels; {MOST_LEVELS} are allowed.", limit=MOST_LEVELS)
    return tuple(levels.values())


def _policy(item: Item) -> Policy:
    keys = item.entries((*POLICY, OVERSUBSCRIBE))

    def number(key: str, default: float, least: float = 0, most: float = 1e9) -> float:
        return keys[key].number(least, most) if _given(keys, key) else default

    def whole(key: str, default: int) -> int:
        return keys[key].whole() if _given(keys, key) else default

    usual = Policy()
    return Policy(
        grace_s=number("grace_s", usual.grace_s, most=24 * 3600),
        min_runtime_s=number("min_runtime_s", usual.min_runtime_s),
        preemptions_per_hour=whole("preemptions_per_hour", usual.preemptions_per_hour),
        preemptions_per_day=whole("preemptions_per_day", usual.preemptions_per_day),
        usage_half_life_h=number("usage_half_life_h", usual.usage_half_life_h, least=0.001),
        usage_weight=number("usage_weight", usual.usage_weight),
        restart_s=number("restart_s", usual.restart_s),
        long_run_s=number("long_run_s", usual.long_run_s),
        claim_delay_s=number("claim_delay_s", usual.claim_delay_s),
    )


def _oversubscribe(item: Item) -> bool:
    keys = item.entries()
    return keys[OVERSUBSCRIBE].flag() if _given(keys, OVERSUBSCRIBE) else False


def _budgets(item: Item) -> Budgets:
    keys = item.entries(BUDGETS)
    given = {key: keys[key].whole(least=1) for key in BUDGETS if _given(keys, key)}
    return replace(Budgets(), **given)


def _retention(item: Item) -> Retention:
    keys, usual = item.entries(RETENTION), Retention()

    days: dict[str, Any] = {
        key: keys[key].number(0, MOST_DAYS)
        for key in RETENTION
        if key != "ended_jobs" and _given(keys, key)
    }
    if _given(keys, "ended_jobs"):
        usual = replace(usual, ended_jobs=keys["ended_jobs"].whole(most=MOST_JOBS))
    return replace(usual, **days)


def _prices(item: Item) -> Prices:
    keys = item.entries(PRICES)
    models = keys["gpu_hour"].entries() if _given(keys, "gpu_hour") else {}
    if not models or not _given(keys, "currency"):
        item.wrong("needs `currency`, such as EUR, and `gpu_hour` with a price for each GPU model.")
    return Prices(
        currency=keys["currency"].text(16),
        gpu_hour={model: one.number(0, MOST_PRICE) for model, one in models.items()},
    )
