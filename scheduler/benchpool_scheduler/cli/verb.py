"""What a verb of the command line is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from benchpool_scheduler.cli.session import Session

Options = Mapping[str, Any]
Run = Callable[[Session, Options], int]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb.

    Attributes:
        path: Its words: ``("config", "check")`` is a verb of a group.
        summary: One sentence; ``details`` further ones.
        run: Does it; the result is the exit status.
        remote: It talks to the service, so it takes ``--url`` and ``--token``.
        command: Words after its own options belong to a job (``submit``).
    """

    path: tuple[str, ...]
    summary: str
    run: Run
    params: tuple[click.Parameter, ...] = ()
    details: str = ""
    remote: bool = True
    command: bool = False


def option(*names: str, **settings: Any) -> click.Option:
    """Return an option; its default is part of its help."""
    return click.Option(list(names), show_default=settings.get("default") is not None, **settings)


def argument(name: str, **settings: Any) -> click.Argument:
    """Return a positional argument."""
    return click.Argument([name], **settings)
