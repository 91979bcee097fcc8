"""Conversion of ``Project``, ``NodePool`` and ``PoolSettings`` to ``benchpool.yaml`` and back.

All objects together form one document, so that the same rules check them. Each object is on a line
of its own, so that an error can be reported at the object that it concerns.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import msgspec
import yaml
from msgspec import Struct

from benchpool_scheduler.configuration.former_keys import PRESENT
from benchpool_scheduler.configuration.loader import line_of, load
from benchpool_scheduler.configuration.nodes import with_quoted_names
from benchpool_scheduler.contract.kubernetes import Kind
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.resources.declaring import Resource
from benchpool_scheduler.resources.gpu_hours import UserHoursSpec
from benchpool_scheduler.resources.idle_benches import IdleRuleSpec
from benchpool_scheduler.resources.policy import PolicySpec
from benchpool_scheduler.resources.pools import (
    NODE_POOLS,
    POOL_SETTINGS,
    PROJECTS,
    BudgetsSpec,
    BuildSpec,
    NodePoolSpec,
    PersonalSpec,
    PoolSettingsSpec,
    PricesSpec,
    ProjectSpec,
    RetentionSpec,
)
from benchpool_scheduler.resources.reservations import ReservationSpec
from benchpool_scheduler.resources.retries import HangRuleSpec, RetryRuleSpec, RetryRulesSpec

SOURCE = "the cluster's settings"
SETTINGS_NAME = "default"
PLAIN = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_PLACE = re.compile(r"^.*?, line \d+: (?:(?:projects|pools)\[\d+\][. ]?)?| on line \d+")


@dataclass(frozen=True, slots=True)
class Declared:
    """Object of one of these kinds.

    Attributes:
        created: Creation time as the API server writes it; sorts by time.
    """

    resource: Resource
    name: str
    spec: ProjectSpec | NodePoolSpec | PoolSettingsSpec
    created: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        """Return its kind and name, which identify it."""
        return self.resource.kind, self.name

    @property
    def title(self) -> str:
        """Return its kind and name as text."""
        return f"{self.resource.kind.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Document:
    """All objects as one text; ``of_line`` maps a line to its object."""

    text: str
    of_line: Mapping[int, Declared]

    def fault(self, error: InvalidInput) -> tuple[Declared | None, str]:
        """Return the object of an error, None for all together, and a sentence for it."""
        line = error.numbers.get("line")
        found = self.of_line.get(line) if isinstance(line, int) else None
        if found is None:
            return None, error.message
        return found, f"{found.title}: {_PLACE.sub('', error.message)}"


def document(declared: Iterable[Declared]) -> Document:
    """Return the objects as one text, with projects in the order of their age."""
    ordered = sorted(declared, key=_age)
    lines = ["version: 1"]
    of_line: dict[int, Declared] = {}

    def add(text: str, one: Declared | None = None) -> None:
        lines.append(text)
        if one is not None:
            of_line[len(lines)] = one

    for one in ordered:
        if isinstance(one.spec, PoolSettingsSpec):
            for key, value in _settings(one.spec).items():
                add(f"{key}: {_flow(value)}", one)
    for heading, kind, of in (
        ("projects", ProjectSpec, _project),
        ("pools", NodePoolSpec, _pool),
    ):
        some = [one for one in ordered if isinstance(one.spec, kind)]
        if some:
            add(f"{heading}:")
        for one in some:
            add(f"- {_flow(of(one))}", one)
    return Document("\n".join(lines) + "\n", of_line)


SETTINGS = (
    *("build", "policy", "topology", "budgets", "retention", "prices", "gpu_hours"),
    *("idle_benches", "retries", "hanging", "reservations"),
)
"""Sections that are fields of ``PoolSettings``."""


def objects(text: str, source: str = "benchpool.yaml") -> list[Declared]:
    """Return the objects that equal a ``benchpool.yaml``. Errors: InvalidInput."""
    load(text, source)  # raises an error that names the line
    top: dict[str, Any] = yaml.safe_load(with_quoted_names(text))
    if (top.get("build") or {}).get("parking"):
        line = line_of(text, "build", "parking")
        raise InvalidInput(
            f"{source}, line {line}: build.parking is for single machines, and this is a cluster. "
            "Omit it.",
            code="configuration",
            numbers={"line": line},
        )
    settings = {key: top[key] for key in SETTINGS if top.get(key)}
    found = [Declared(POOL_SETTINGS, SETTINGS_NAME, _read_settings(settings, source))]
    for order, project in enumerate(top.get("projects") or ()):
        body = {PRESENT.get(key, key): value for key, value in project.items()}
        if body.get("personal_projects") is not None:
            body["personal_projects"] = _encoded(body["personal_projects"], PersonalSpec)
        spec = _convert(body | {"order": order}, ProjectSpec, source)
        found.append(Declared(PROJECTS, object_name(project["name"]), spec))
    for order, pool in enumerate(top.get("pools") or ()):
        body = {PRESENT.get(key, key): value for key, value in pool.items()}
        spec = _convert(body | {"order": order}, NodePoolSpec, source)
        found.append(Declared(NODE_POOLS, object_name(pool["name"]), spec))
    return found


def object_name(name: str) -> str:
    """Return a valid Kubernetes name: the name itself if it is valid, else a similar one.

    >>> object_name("research"), object_name("Vision & Speech")
    ('research', 'vision-speech-2dbd167f')
    """
    if PLAIN.fullmatch(name):
        return name
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50]
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{plain}-{mark}".lstrip("-")


# --------------------------------------------------------------------------- to a document


def _age(one: Declared) -> tuple[int, str, str]:
    order = 0 if isinstance(one.spec, PoolSettingsSpec) else one.spec.order
    return order, one.created, one.name


def _settings(spec: PoolSettingsSpec) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if spec.build is not None:
        found["build"] = _plain(spec.build)
    if spec.policy is not None:
        found["policy"] = _plain(spec.policy)
    if spec.budgets is not None:
        found["budgets"] = _plain(spec.budgets)
    if spec.topology:
        found["topology"] = list(spec.topology)
    if spec.retention is not None:
        found["retention"] = _plain(spec.retention)
    if spec.prices is not None:
        found["prices"] = _plain(spec.prices)
    if spec.gpu_hours is not None:
        found["gpu_hours"] = _plain(spec.gpu_hours)
    if spec.idle_benches is not None:
        found["idle_benches"] = _idle(spec.idle_benches)
    if spec.retries is not None:
        found["retries"] = _plain(spec.retries)
    if spec.hanging is not None:
        found["hanging"] = _plain(spec.hanging)
    if spec.reservations:
        found["reservations"] = [msgspec.to_builtins(one) for one in spec.reservations]
    return found


def _idle(spec: IdleRuleSpec) -> dict[str, Any]:
    exempt = [{key: value for key, value in _plain(one).items() if value} for one in spec.exempt]
    return {**_plain(spec), "exempt": exempt}


def _project(one: Declared) -> dict[str, Any]:
    spec = one.spec
    found = _plain(spec)
    found["name"] = found.get("name") or one.name
    found.pop("order", None)
    return found


def _pool(one: Declared) -> dict[str, Any]:
    found = _plain(one.spec)
    found.pop("order", None)
    return {"name": one.name, **{key: value for key, value in found.items() if value}}


def _plain(spec: Struct) -> dict[str, Any]:
    """Return the set fields by their names in ``benchpool.yaml``."""
    return _set(msgspec.structs.asdict(spec))


def _set(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Struct):
            found[key] = _plain(value)
        elif isinstance(value, Mapping):
            found[key] = _set(value)
        elif value is not None:
            found[key] = value
    return found


def _flow(value: object) -> str:
    """Return a value on one line, as JSON, which is valid YAML."""
    return msgspec.json.encode(value).decode()


# --------------------------------------------------------------------------- from a document


def _read_settings(settings: Mapping[str, Any], source: str) -> PoolSettingsSpec:
    keys = ("build", "policy", "budgets", "retention", "prices", "gpu_hours")
    build, policy, budgets, retention, prices, hours = (settings.get(key) for key in keys)
    idle, again, hang = (settings.get(key) for key in ("idle_benches", "retries", "hanging"))
    return PoolSettingsSpec(
        build=None if build is None else _convert(build, BuildSpec, source),
        policy=None if policy is None else _convert(policy, PolicySpec, source),
        budgets=None if budgets is None else _convert(budgets, BudgetsSpec, source),
        topology=list(settings.get("topology") or ()),
        retention=None if retention is None else _convert(retention, RetentionSpec, source),
        prices=None if prices is None else _convert(prices, PricesSpec, source),
        gpu_hours=None if hours is None else _convert(hours, UserHoursSpec, source),
        idle_benches=None if idle is None else _convert(_dated(idle), IdleRuleSpec, source),
        hanging=None if hang is None else _convert(hang, HangRuleSpec, source),
        retries=None if again is None else _convert(_retries(again), RetryRulesSpec, source),
        reservations=[
            msgspec.convert({name: _text(value) for name, value in one.items()}, ReservationSpec)
            for one in settings.get("reservations") or ()
        ],
    )


def _dated(idle: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rule for idle benches with its days as text; YAML reads them as dates."""
    exempt = [{**each, "until": str(each["until"])} for each in idle.get("exempt") or ()]
    return {**idle, "exempt": exempt} if exempt else idle


def _text(value: object) -> object:
    """Return a value with times as text; YAML reads some as times."""
    return str(value) if isinstance(value, date) else value


def _retries(rules: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the retry rules, each with the key names of objects."""
    return {cause: _encoded(rule, RetryRuleSpec) for cause, rule in rules.items() if rule}


def _convert(value: Mapping[str, Any], into: Any, source: str) -> Any:
    """Return a Struct from values by field name. Errors: InvalidInput."""
    try:
        return msgspec.convert(_encoded(value, into), into)
    except msgspec.ValidationError as error:
        raise InvalidInput(
            f"{source}: {error}; this cannot be an object of the cluster.", code="configuration"
        ) from None


def _encoded(value: Mapping[str, Any], into: Any) -> dict[str, Any]:
    """Return the set fields of a Struct by their names in objects."""
    return {
        field.encode_name: value[field.name]
        for field in msgspec.structs.fields(into)
        if value.get(field.name) is not None
    }


def names(declared: Sequence[Declared]) -> frozenset[tuple[Kind, str]]:
    """Return the keys of these objects."""
    return frozenset(one.key for one in declared)
