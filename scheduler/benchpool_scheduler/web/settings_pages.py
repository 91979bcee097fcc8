"""Pages of users and quotas for administrators: a form, with a preview of its changes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from benchpool_scheduler.api import audit
from benchpool_scheduler.configuration import Configuration, command_of, written
from benchpool_scheduler.contract import ConfigurationChange, WhatIf, WhatIfQuestion
from benchpool_scheduler.contract.configuration import (
    ConfigurationEdit,
    ConfigurationRevert,
    ConfigurationVersion,
    Setting,
)
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.people import Person
from benchpool_scheduler.errors import BenchpoolError, InvalidInput, TooMany
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service import Caller
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.web.pages import FormHandler, PageHandler, Site
from benchpool_scheduler.web.settings_form import OWN, PREFIX, SettingsForm, shown
from benchpool_scheduler.web.words import Moment, moment

VERSIONS_SHOWN = 12
MOST_FIELD = 100_000
BUSY_TRIES, BUSY_S = 20, 0.25


@dataclass(frozen=True, slots=True)
class SettingsPlan:
    """Changes of a form; ``wrong`` is why they are invalid."""

    settings: Sequence[Setting] = ()
    command: str = ""
    whatif: WhatIf | None = None
    wrong: str = ""

    @property
    def heading(self) -> str:
        """Return the number of changed values in words."""
        number = len(self.settings)
        return f"{count(number, 'value')} to change" if number else "Nothing to change yet"

    @property
    def shares(self) -> list[str]:
        """Return the changed fair shares of projects in words."""
        found = []
        for one in () if self.whatif is None else self.whatif.projects:
            was = 0 if one.before is None else one.before.fair_share
            now = 0 if one.after is None else one.after.fair_share
            if was != now:
                found.append(f"{one.name}: fair share {was} → {now}")
        return found


@dataclass(frozen=True, slots=True)
class PersonRow:
    """One user as the page shows it."""

    person: Person
    seen: Moment | None
    projects: str


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version as the page shows it; ``how`` is how it came into force."""

    version: ConfigurationVersion
    at: Moment
    how: str


class _SettingsPage(PageHandler):
    async def administrator(self) -> Caller:
        """Return the reader. Errors: Forbidden for users who are not administrators."""
        caller = await self.reader()
        rights.require_admin(caller, "change users and quotas")
        return caller

    def form(self) -> SettingsForm:
        """Return the submitted fields. Errors: InvalidInput for a field that is too long."""
        found = {}
        for name in self.request.body_arguments:
            text = self.get_body_argument(name, "")
            if len(text) > MOST_FIELD:
                raise InvalidInput(
                    f"A field has {len(text)} characters, at most {MOST_FIELD} are allowed.",
                    numbers={"length": len(text), "limit": MOST_FIELD},
                )
            found[name] = text
        return SettingsForm(found)

    async def show_form(
        self, name: str, caller: Caller, form: SettingsForm, plan: SettingsPlan
    ) -> None:
        """Render the page with the submitted values."""
        pool, now = self.site.pool, self.site.now()
        configuration = in_file(self.site)
        kept = shown(configuration)
        values = {
            **kept,
            **{
                key.removeprefix(PREFIX): text
                for key, text in form.fields.items()
                if key.startswith(PREFIX)
            },
        }
        versions = await pool.configuration.versions.log(caller, VERSIONS_SHOWN)
        saved = self.get_query_argument("saved", "")
        status = pool.views.status(caller, gpus=False)
        await self.show(
            f"{name}.html",
            self.facts(back=name),
            plan=plan,
            name=name,
            value=lambda key: values.get(key, ""),
            was=lambda key: kept.get(key, ""),
            typed=lambda field: form.fields.get(field, ""),
            base=versions[0].number if versions else 0,
            saved=int(saved) if saved.isascii() and saved.isdecimal() else 0,
            versions=[VersionRow(one, moment(one.at, now), _how(one)) for one in versions],
            people=[
                PersonRow(
                    one,
                    None if one.last_seen is None else moment(one.last_seen, now),
                    _projects(one),
                )
                for one in pool.people.all(caller)
            ],
            projects=configuration.projects,
            parents={p.name for p in configuration.projects if configuration.is_parent(p.name)},
            standing={one.name: one for one in status.projects},
            build=configuration.build,
            gpu_hours=configuration.gpu_hours,
            own=OWN,
        )


class SettingsHandler(_SettingsPage):
    """``GET`` and ``POST <prefix>people``, ``<prefix>quotas``."""

    async def get(self, name: str) -> None:
        """Show the page. Errors: Forbidden for users who are not administrators."""
        caller = await self.administrator()
        await self.show_form(name, caller, SettingsForm({}), SettingsPlan())

    async def post(self, name: str) -> None:
        """Save, then redirect; show errors beside the submitted values."""
        caller = await self.administrator()
        self.refuse_forged()
        form = self.form()
        try:
            settings = form.settings(in_file(self.site))
            if not settings:
                raise InvalidInput(
                    "Nothing to change. No value differs from the configuration in force."
                )
            done = await self._save(caller, ConfigurationEdit(settings, form.reason, form.base))
        except BenchpoolError as refused:
            plan = await plan_of(self, caller, form)
            self.set_status(refused.http_status)
            wrong = SettingsPlan(plan.settings, plan.command, plan.whatif, refused.message)
            await self.show_form(name, caller, form, wrong)
            return
        self.redirect(f"{self.site.root}{name}?saved={done.version}", status=303)

    async def _save(self, caller: Caller, edit: ConfigurationEdit) -> ConfigurationChange:
        operation, pool = Operations.set_config, self.site.pool
        try:
            done = await pool.configuration.set(caller, edit)
        except BenchpoolError as error:
            audit.note(pool, operation, caller, self, error)
            raise
        await pool.audit.record(audit.done(operation, caller, self.request, {}, edit, done, None))
        return done


class PreviewHandler(FormHandler, _SettingsPage):
    """``POST <prefix>people/preview``: a preview of the changes, beside the form."""

    PAGE = "{name}"

    async def post(self, name: str) -> None:
        """Send the preview panel."""
        caller = await self.administrator()
        self.refuse_forged()
        form = self.form()
        plan = await plan_of(self, caller, form)
        await self.show("plan.html", self.facts(back=name), plan=plan)


class RevertHandler(FormHandler, _SettingsPage):
    """``POST <prefix>quotas/revert``: restore an earlier version."""

    PAGE = "{name}"

    async def post(self, name: str) -> None:
        """Restore the version, then redirect."""
        caller = await self.administrator()
        self.refuse_forged()
        form, operation, pool = self.form(), Operations.revert_config, self.site.pool
        number = form.fields.get("version", "")
        asked = ConfigurationRevert(int(number) if number.isdecimal() else None, form.reason)
        try:
            done = await pool.configuration.revert(caller, asked)
        except BenchpoolError as error:
            audit.note(pool, operation, caller, self, error)
            raise
        await pool.audit.record(audit.done(operation, caller, self.request, {}, asked, done, None))
        self.redirect(f"{self.site.root}{name}?saved={done.version}", status=303)


def in_file(site: Site) -> Configuration:
    """Return the configuration as written, without the derived personal projects."""
    return written(site.pool.observed.now.configuration)


async def plan_of(page: PageHandler, caller: Caller, form: SettingsForm) -> SettingsPlan:
    """Return a form's changes, and their effect on running, waiting and preempted jobs."""
    pool = page.site.pool
    settings: Sequence[Setting] = ()
    try:
        settings = form.settings(in_file(page.site))
        if not settings:
            await pool.whatifs.prepare(caller)
            return SettingsPlan()
        question = WhatIfQuestion(settings=list(settings))
        for _ in range(BUSY_TRIES):
            try:
                found = await pool.whatifs.ask(caller, question)
            except TooMany:  # another administrator's request is running
                await asyncio.sleep(BUSY_S)
            else:
                return SettingsPlan(settings, command_of(settings), found)
        found = await pool.whatifs.ask(caller, question)
    except BenchpoolError as refused:
        return SettingsPlan(settings, command_of(settings), None, refused.message)
    return SettingsPlan(settings, command_of(settings), found)


def _how(version: ConfigurationVersion) -> str:
    words = {
        "start": "read at a start",
        "apply": "a file was applied",
        "set": "values were set",
        "reload": "the file was reloaded",
        "objects": "cluster objects were changed",
    }
    if version.reverts is not None:
        return f"revert to version {version.reverts}"
    return words.get(version.way.value, version.way.value)


def _projects(person: Person) -> str:
    named = [f"{name} (leads)" if name in person.leads else name for name in person.projects]
    above = [f"{name} (leads)" for name in person.leads if name not in person.projects]
    return ", ".join([*named, *above])
