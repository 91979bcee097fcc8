"""The page on the tools of ``benchpool mcp``, from the table of operations."""

from __future__ import annotations

from benchpool_scheduler.mcp_server import tools

_INTRO = """\
# Tools for programs with a language model

[`benchpool mcp`](../howto/assistants.md) offers these tools, with the names of the \
[HTTP API](rest.md). Arguments in bold are required, and other arguments are rejected. The result \
is the API's JSON, at most {most} bytes. For a log it is the end of the log, unless `offset` is set.
"""
_LOOK = "\n## Always available\n"
_CHANGE = "\n## With `--allow-writes`\n"


def page() -> str:
    """Return the page."""
    every = tools.offered(writes=True).values()
    return (
        _INTRO.format(most=f"{tools.MOST_BYTES:,}")
        + _LOOK
        + _table([tool for tool in every if not tool.writes])
        + _CHANGE
        + _table([tool for tool in every if tool.writes])
    )


def _table(chosen: list[tools.Tool]) -> str:
    rows = ["", "| tool | what it does | arguments |", "|---|---|---|"]
    for tool in chosen:
        needed = tool.takes["required"]
        names = (f"**`{each}`**" if each in needed else f"`{each}`" for each in _names(tool))
        rows.append(f"| `{tool.name}` | {tool.text.partition(chr(10))[0]} | {', '.join(names)} |")
    return "\n".join([*rows, ""])


def _names(tool: tools.Tool) -> list[str]:
    return list(tool.takes["properties"])
