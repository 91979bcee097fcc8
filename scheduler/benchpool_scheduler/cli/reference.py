"""Reference pages of command line and HTTP API, generated from their tables.

``pages()`` returns file names below ``docs/reference/`` with their text. A check compares them with
the stored pages, so that these are never stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from benchpool_scheduler.api import openapi
from benchpool_scheduler.cli.commands import group
from benchpool_scheduler.errors import BY_STATUS

NOTE = "<!-- generated from the tables of verbs and routes: do not edit -->\n"


def pages() -> Mapping[str, str]:
    """Return the generated pages by file name."""
    return {"cli.md": cli(), "rest.md": rest(), "openapi.json": openapi.text()}


def cli() -> str:
    """Return the page of the command line."""
    parts = [
        NOTE,
        "# Command line\n",
        "All verbs take `--json` and then print one JSON value. Exit status: 0 done, 2 wrong use "
        "or bad input, 3 refused by a rule, 4 not reachable, 1 any other error. An ID may be "
        "shortened to its first characters, at least 4, if only one job has them.\n",
        *_commands(group(), "benchpool"),
    ]
    return "\n".join(parts)


def _commands(parent: click.Group, path: str) -> Iterator[str]:
    for name in parent.list_commands(click.Context(parent)):
        command, here = parent.commands[name], f"{path} {name}"
        if command.hidden:
            continue
        if isinstance(command, click.Group) and not command.invoke_without_command:
            yield from _commands(command, here)
            continue
        context = click.Context(command, info_name=here)
        usage = " ".join(command.collect_usage_pieces(context))
        yield f"## {here}\n\n```\n{here} {usage}\n```\n\n{command.help}\n"
        options = [one for one in command.params if isinstance(one, click.Option)]
        yield "| option | what |\n|---|---|"
        yield "\n".join(map(_option, options)) + "\n"
        if isinstance(command, click.Group):
            yield from _commands(command, here)


def _option(option: click.Option) -> str:
    value = "" if option.is_flag else f" {option.make_metavar(click.Context(click.Command('x')))}"
    default = option.default
    known = isinstance(default, int | str) and not isinstance(default, bool)
    note = f" Default: {default}." if known else ""
    names = ", ".join(option.opts).replace("|", "\\|")
    value = value.replace("|", "\\|")
    return f"| `{names}{value}` | {option.help or ''}{note} |"


def rest() -> str:
    """Return the page of the HTTP API."""
    known = openapi.document()
    rows = [
        _operation(path, method, operation)
        for path, methods in known["paths"].items()
        for method, operation in methods.items()
    ]
    errors = [f"| {status} | {kind.__doc__ or ''} |" for status, kind in BY_STATUS.items()]
    return "\n".join(
        [
            NOTE,
            "# HTTP API\n",
            "Below `/services/benchpool/api/v1`, with a token of the Hub (`Authorization: token "
            "…`). The full description is [openapi.json](openapi.json). Bodies are closed: an "
            "unknown key is refused.\n",
            "| request | what | who | body | answer |\n|---|---|---|---|---|",
            *rows,
            "\n## Errors\n",
            'Every error answer is `{"error": {"code", "message", "field", "numbers"}}`.\n',
            "| status | when |\n|---|---|",
            *errors,
            "",
        ]
    )


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> str:
    query = [one["name"] for one in operation["parameters"] if one["in"] == "query"]
    address = path + (f"?{'&'.join(query)}" if query else "")
    body = _content(operation.get("requestBody", {}))
    good = [answer for status, answer in operation["responses"].items() if status != "default"]
    return (
        f"| `{method.upper()} {address}` | {operation['summary']} | {operation['x-who']} | {body} "
        f"| {_content(good[0])} |"
    )


def _content(described: Mapping[str, Any]) -> str:
    for kind, content in described.get("content", {}).items():
        name = _name(content["schema"])
        return name or f"`{kind}`"
    return ""


def _name(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    if schema.get("type") == "array":
        return f"list of {_name(schema['items'])}"
    return ""
