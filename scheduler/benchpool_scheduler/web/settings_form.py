"""Fields of the settings form as text, compared with the configuration in force.

A field ``set:KEY`` holds one value in the notation of ``config set``; an empty field is no value.
Other fields add users and projects.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.contract.configuration import Setting
from benchpool_scheduler.core.fairness.gpu_hours import HourBudget
from benchpool_scheduler.errors import InvalidInput

PREFIX = "set:"
LISTS = ("members", "leads")
PROJECT_KEYS = ("quota", "limit", "weight", "priority", *LISTS)
OWN = "(own)"
"""Choice of a personal project for each added user."""


def shown(configuration: Configuration) -> dict[str, str]:
    """Return the values of the fields, by key; unset keys are left out.

    >>> from benchpool_scheduler.configuration import load
    >>> text = "{version: 1, build: {users: {ann: 2}}, projects: [{name: a, members: [ann, joe]}]}"
    >>> shown(load(text))
    ... # doctest: +NORMALIZE_WHITESPACE
    {'build.default': '0', 'build.users.ann': '2', 'projects.a.quota': '0',
     'projects.a.priority': '0', 'projects.a.members': 'ann, joe'}
    """
    return {key: text for key, text in _shown(configuration) if text}


def _shown(configuration: Configuration) -> Iterator[tuple[str, str]]:
    build = configuration.build
    yield "build.default", str(build.default)
    for kind, quotas in (("users", build.users), ("groups", build.groups)):
        for name, quota in quotas.items():
            yield f"build.{kind}.{name}", str(quota)
    yield from _hours("gpu_hours", configuration.gpu_hours.default)
    for user, budget in configuration.gpu_hours.users.items():
        yield from _hours(f"gpu_hours.users.{user}", budget)
    for settings in configuration.projects:
        project, at = settings.project, f"projects.{settings.name}"
        yield f"{at}.quota", "unlimited" if project.quota is None else str(project.quota)
        yield f"{at}.limit", "" if project.limit is None else str(project.limit)
        yield f"{at}.weight", "" if project.weight is None else f"{project.weight:g}"
        yield f"{at}.priority", str(project.priority)
        yield from _hours(f"{at}.gpu_hours", settings.gpu_hours)
        if settings.personal_projects is not None:
            each = settings.personal_projects
            yield (
                f"{at}.personal_projects.quota",
                "unlimited" if each.quota is None else str(each.quota),
            )
            yield f"{at}.personal_projects.limit", "" if each.limit is None else str(each.limit)
            yield from _hours(f"{at}.personal_projects.gpu_hours", each.gpu_hours)
        yield f"{at}.members", ", ".join(settings.members)
        yield f"{at}.leads", ", ".join(settings.leads)


def _hours(at: str, budget: HourBudget) -> Iterator[tuple[str, str]]:
    yield f"{at}.soft", "" if budget.soft is None else f"{budget.soft:.10g}"
    yield f"{at}.hard", "" if budget.hard is None else f"{budget.hard:.10g}"


@dataclass(frozen=True, slots=True)
class SettingsForm:
    """Submitted fields of a form."""

    fields: Mapping[str, str]

    def settings(self, configuration: Configuration) -> list[Setting]:
        """Return the changed and added settings. Errors: InvalidInput."""
        found = [*self._changed(configuration), *self._new_people(configuration)]
        return [*found, *self._new_project()]

    def _changed(self, configuration: Configuration) -> Iterator[Setting]:
        now = shown(configuration)
        for name, text in self.fields.items():
            if not name.startswith(PREFIX):
                continue
            key = name.removeprefix(PREFIX)
            if key.rpartition(".")[2] in LISTS:
                people = names(text)
                if people != names(now.get(key, "")):
                    yield Setting(key, list(people) or None)
            elif text.strip() != now.get(key, ""):
                yield Setting(key, _value(text))

    def _new_people(self, configuration: Configuration) -> Iterator[Setting]:
        people = names(self.fields.get("people", ""))
        project, bench = self.fields.get("project", ""), self.fields.get("bench", "").strip()
        for person in people:
            if bench:
                group = person.removeprefix("group:")
                kind = "users" if group == person else "groups"
                yield Setting(f"build.{kind}.{group}", _value(bench))
        if project and project != OWN and people:
            there = configuration.project(project)
            new = [one for one in people if there is None or one not in there.members]
            if new:
                yield Setting(f"projects.{project}.members", add=new)
        if project == OWN:
            for person in people:
                yield from self._own_project(person)

    def _own_project(self, person: str) -> Iterator[Setting]:
        name = person.removeprefix("group:")
        yield Setting(f"projects.{name}.name", name)
        yield Setting(f"projects.{name}.quota", _value(self.fields.get("own_quota", "") or "0"))
        yield Setting(f"projects.{name}.members", add=[person])

    def _new_project(self) -> Iterator[Setting]:
        name = " ".join(self.fields.get("new_project", "").split())
        if not name:
            return
        yield Setting(f"projects.{name}.name", name)
        yield Setting(f"projects.{name}.quota", _value(self.fields.get("new_quota", "") or "0"))
        if people := names(self.fields.get("new_members", "")):
            yield Setting(f"projects.{name}.members", add=list(people))
        if parent := self.fields.get("new_parent", ""):
            yield Setting(f"projects.{name}.parent", parent)

    @property
    def reason(self) -> str:
        """Return the reason on one line. Errors: InvalidInput without one."""
        words = " ".join(self.fields.get("reason", "").split())
        if not words:
            raise InvalidInput(
                "The reason is missing. Give a short reason; it is recorded with the change.",
                field="reason",
            )
        return words

    @property
    def base(self) -> int | None:
        """Return the version of the configuration that the form is based on."""
        text = self.fields.get("base", "")
        return int(text) if text.isascii() and text.isdecimal() and int(text) else None


def names(text: str) -> tuple[str, ...]:
    """Return the distinct names in a text, separated by lines or commas.

    >>> names("ann, joe\\n group:staff,ann")
    ('ann', 'joe', 'group:staff')
    """
    found = (" ".join(each.split()) for each in re.split(r"[,;\n]", text))
    return tuple(dict.fromkeys(each for each in found if each))


def _value(text: str) -> int | float | str | None:
    """Return the value of a field; a text that is no number is passed on for validation."""
    text = text.strip()
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text or None
