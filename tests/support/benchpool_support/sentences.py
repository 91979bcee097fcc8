"""Texts in the product's source, and the names in them: commands, options, variables, keys."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import click

from benchpool_scheduler.cli.commands import group
from benchpool_support import checkout

HUB_CONFIG = checkout.ROOT / "hub_config"
FILLED = {
    "present": "jobs",
    "part": "results",
    "kind": "jobs",
    "verb": "submit",
    "ALLOW_WRITES": "--allow-writes",
}
"""Replacements for variable parts of commands that must be words of the command line."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """Text of the source.

    Attributes:
        place: Module and line.
        text: The text; each variable part is replaced by one word.
        shown: The text is not a docstring.
    """

    place: str
    text: str
    shown: bool


@cache
def sentences() -> tuple[Sentence, ...]:
    """Return all texts of more than one word, including docstrings."""
    found = []
    for module in checkout.modules(*checkout.PRODUCT, HUB_CONFIG):
        tree = ast.parse(module.path.read_text("utf-8"))
        alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in _texts(tree):
            text = _text(node)
            if " " in text:
                place = f"{module.name}:{node.lineno}"
                found.append(Sentence(place, text, shown=id(node) not in alone))
    return tuple(found)


def commands(text: str) -> list[list[str]]:
    """Return the words of each command between backticks in a text.

    >>> commands("`benchpool jobs --all` lists ids, `benchpool` does not.")
    [['jobs', '--all']]
    """
    return [shlex.split(found) for found in re.findall(r"`benchpool\s+([^`]+)`", text)]


def parse(words: list[str]) -> None:
    """Parse the words of a command like the command line, without running it.

    A command without all of its arguments is parsed as far as possible.

    Raises:
        click.UsageError: The command line rejects these words.
    """
    command: click.Command = group()
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if isinstance(command, click.Group) and not command.invoke_without_command:
        raise click.UsageError(f"there is no command {' '.join(words)}")
    try:
        command.make_context("benchpool", [word for word in words if word != "--help"])
    except click.MissingParameter:
        return
    except click.BadOptionUsage as wrong:
        if words[-1:] != [wrong.option_name]:
            raise


def options() -> set[str]:
    """Return the options of all commands."""
    return {name for one in _every(group()) for param in one.params for name in _names(param)}


def _every(command: click.Command) -> Iterator[click.Command]:
    yield command
    if isinstance(command, click.Group):
        for below in command.commands.values():
            yield from _every(below)


def _names(param: click.Parameter) -> list[str]:
    return [*param.opts, *param.secondary_opts]


def _texts(tree: ast.Module) -> list[ast.Constant | ast.JoinedStr]:
    every = list(ast.walk(tree))
    parts = {id(part) for node in every if isinstance(node, ast.JoinedStr) for part in node.values}
    return [
        node
        for node in every
        if isinstance(node, ast.JoinedStr)
        or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if id(node) not in parts
    ]


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else _filled(part.value)
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def _filled(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return FILLED.get(name, "1")
