"""Definition of a verb of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.contract.options import SubmitOption, value_of

Options = Mapping[str, Any]
Run = Callable[[Session, Options], int]


@dataclass(frozen=True, slots=True)
class Verb:
    """Verb of the command line.

    Attributes:
        path: Words of the verb: ``("config", "check")`` is a verb of a group.
        summary: One sentence. ``details``: further sentences.
        run: Runs the verb and returns the exit status.
        remote: Whether it uses the service, and so takes ``--url`` and ``--token``.
        command: Whether words after its own options belong to a job (``submit``).
        replaces: Words of its former name, which works until the next release.
    """

    path: tuple[str, ...]
    summary: str
    run: Run
    params: tuple[click.Parameter, ...] = ()
    details: str = ""
    remote: bool = True
    command: bool = False
    replaces: tuple[str, ...] = ()


def option(*names: str, **settings: Any) -> click.Option:
    """Return an option. Its default is shown in its help."""
    return click.Option(list(names), show_default=settings.get("default") is not None, **settings)


def argument(name: str, **settings: Any) -> click.Argument:
    """Return a positional argument."""
    return click.Argument([name], **settings)


def submit_option(of: SubmitOption) -> click.Option:
    """Return an option of ``submit`` in the form of the command line."""
    takes = value_of(of)
    names = (of.name, of.flag, *([of.short] if of.short else []))
    if takes.type is bool:
        return option(*names, is_flag=True, help=of.help)
    settings: dict[str, Any] = {"help": of.help, "metavar": of.metavar or None}
    if takes.many:
        return option(*names, multiple=True, **settings)
    if takes.type is str:
        return option(*names, **settings)
    if takes.duration:
        return option(*names, **settings)  # parsed by ``fields_of``, as in Python
    bounds: Any = click.IntRange if takes.type is int else click.FloatRange
    type_ = bounds(min=takes.least, max=takes.most)
    return option(*names, type=type_, default=takes.default, **settings)
