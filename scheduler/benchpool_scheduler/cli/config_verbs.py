"""``benchpool config set``: sets single values of the configuration."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from benchpool_scheduler.cli import config_views
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.cli.whatif_verb import show
from benchpool_scheduler.contract import WhatIfQuestion
from benchpool_scheduler.contract.configuration import ConfigurationEdit, Setting
from benchpool_scheduler.errors import InvalidInput


def settings(given: Iterable[str]) -> list[Setting]:
    """Return the settings to apply. Errors: InvalidInput.

    >>> settings(["projects.vision.quota=3", "projects.vision.members+=joe,ann"])
    ... # doctest: +NORMALIZE_WHITESPACE
    [Setting(key='projects.vision.quota', value=3, add=[], remove=[]),
     Setting(key='projects.vision.members', value=None, add=['joe', 'ann'], remove=[])]
    """
    return [_setting(one) for one in given]


def _setting(one: str) -> Setting:
    key, equals, value = one.partition("=")
    if not equals or not key.rstrip("+-"):
        raise InvalidInput(
            f"{one!r} sets nothing. Write KEY=VALUE, KEY= to remove the key, or KEY+=NAME,NAME "
            "and KEY-=NAME for lists, such as build.users.susan=2.",
            field="settings",
        )
    names = [name.strip() for name in value.split(",") if name.strip()]
    if key[-1] == "+":
        return Setting(key[:-1], add=names)
    if key[-1] == "-":
        return Setting(key[:-1], remove=names)
    return Setting(key, value=_value(one, value))


def _value(one: str, value: str) -> bool | int | float | str | list[str] | None:
    try:
        read = yaml.safe_load(value)
    except yaml.YAMLError:
        read = value
    if isinstance(read, list):
        return [str(each) for each in read]
    if read is None or isinstance(read, bool | int | float | str):
        return read
    raise InvalidInput(f"{one!r}: the value must be a number, a word or a list.", field="settings")


def _set(session: Session, options: Options) -> int:
    wanted = settings(options["settings"])
    if options["dry_run"]:
        answer = session.client.whatif(WhatIfQuestion(settings=wanted))
        if session.screen.json:
            session.screen.value(answer)
        else:
            show(session.screen, answer)
        return 0
    done = session.client.set_config(ConfigurationEdit(wanted, options["reason"]))
    if session.screen.json:
        session.screen.value(done)
    else:
        config_views.change(session.screen, done)
    return 0


SET = Verb(
    ("config", "set"),
    "Set single values of the configuration; comments and order of the file stay.",
    _set,
    (
        argument("settings", metavar="KEY=VALUE...", nargs=-1, required=True),
        option("--reason", help="Reason, shown in `benchpool config log`."),
        option("--dry-run", is_flag=True, help="Only show the effects on jobs and projects."),
    ),
    "Keys are written with dots: build.users.susan=2, projects.vision.quota=4, policy.grace_s=60. "
    "An empty value removes the key. projects.vision.members+=joe,ann adds to a list, -= takes "
    "from it. projects.vision.name=vision creates a project. All settings are applied, or none.",
)
