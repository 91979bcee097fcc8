"""Terminal commands that equal the forms, from the table of operations."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.options import FLAGS

FILLED = "…"
"""Placeholder for a value that a form asks for."""


def command(one: Operation[Any], part: str = "", /, **given: str) -> str:
    """Return the command of an operation; ``FILLED`` stands for a value that a form asks for.

    Args:
        part: Variable part of its address, a job or a machine.

    >>> from benchpool_scheduler.contract.operations import Operations
    >>> command(Operations.add_member, project="vision", user="ann lee")
    "benchpool access add vision 'ann lee'"
    >>> command(Operations.pause, "7k2m", reason=FILLED)
    'benchpool pause 7k2m --reason …'
    """
    if one.verb is None:
        raise LookupError(f"{one.name} has no verb")
    first = [part] if part else []
    positional = [given[name] for name in one.verb.positional if name in given]
    rest = [name for name in given if name not in one.verb.positional]
    words = ["benchpool", *one.verb.words, *map(_word, [*first, *positional])]
    return " ".join([*words, *_options(rest, given)])


def _options(names: Iterable[str], given: dict[str, str]) -> Iterable[str]:
    for name in names:
        yield flag(name)
        if given[name]:
            yield _word(given[name])


def flag(name: str) -> str:
    """Return the command-line option of a field.

    >>> flag("time_limit_s"), flag("reason")
    ('--time-limit', '--reason')
    """
    return FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _word(text: str) -> str:
    return text if text == FILLED else shlex.quote(text)
