"""Construction of click commands from the table of verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from benchpool_scheduler import __version__
from benchpool_scheduler.cli import entry
from benchpool_scheduler.cli.config_verbs import SET
from benchpool_scheduler.cli.machine_verbs import MACHINE_VERBS
from benchpool_scheduler.cli.mcp_verb import MCP
from benchpool_scheduler.cli.pool_verbs import POOL_VERBS
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Verb, option
from benchpool_scheduler.cli.whatif_verb import WHATIF

VERBS: tuple[Verb, ...] = (*POOL_VERBS, SET, WHATIF, MCP, *MACHINE_VERBS)
"""All verbs of ``benchpool``."""

GROUPS = {
    "token": "The token of the administrator.",
    "config": "Look at the pool's configuration, change it, and its versions.",
    "node": "Say whether a machine takes starts: drain, open, note, window.",
}

JSON = option("--json", is_flag=True, help="Print one JSON value.")
WHERE = (
    option("--url", help="Address of the service; else BENCHPOOL_URL, else what runs here."),
    option("--token", help="A token of the Hub; else BENCHPOOL_TOKEN, else the server's own."),
)


class JobCommand(click.Command):
    """Command whose words from the script, ``-m`` or ``--`` on belong to a job."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the command and keep the job's words unchanged."""
        own, ctx.meta["command"] = entry.split(args, self.params)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage text, with the job's words after the options."""
        pieces = super().collect_usage_pieces(ctx)
        named = any(isinstance(it, click.Argument) for it in self.params)
        what = "SCRIPT" if named else "SCRIPT | NOTEBOOK"
        return [*pieces, f"({what} | -m MODULE | -- COMMAND...)", "[ARGS...]"]


def command(verb: Verb) -> click.Command:
    """Return the click command of a verb."""

    def run(**options: Any) -> int:
        context = click.get_current_context()
        session: Session = context.obj
        session.screen.json = options.pop("json")
        if verb.remote:
            session.url, session.token = options.pop("url"), options.pop("token")
        if verb.command:
            options["command"] = context.meta["command"]
        return verb.run(session, options)

    if any(other.path[:-1] == verb.path for other in VERBS):
        return with_words(verb, run)
    return (JobCommand if verb.command else click.Command)(
        verb.path[-1],
        callback=run,
        params=[*verb.params, JSON, *(WHERE if verb.remote else ())],
        help=f"{verb.summary}\n\n{verb.details}".strip(),
        short_help=verb.summary.rstrip("."),
    )


def with_words(verb: Verb, run: Callable[..., int]) -> click.Group:
    """Return a verb that runs by itself and also has subcommands, such as ``audit``."""

    def alone(**options: Any) -> int | None:
        if click.get_current_context().invoked_subcommand is not None:
            return None
        return run(**options)

    return Ordered(
        verb.path[-1],
        callback=alone,
        invoke_without_command=True,
        params=[*verb.params, JSON, *(WHERE if verb.remote else ())],
        help=f"{verb.summary}\n\n{verb.details}".strip(),
        short_help=verb.summary.rstrip("."),
    )


def group() -> click.Group:
    """Return ``benchpool`` with all its verbs, in the order of the table."""
    top = Ordered("benchpool", help="A GPU bench for every researcher and a training pool for all.")
    click.version_option(__version__, prog_name="benchpool")(top)
    for verb in VERBS:
        parent = top
        for word in verb.path[:-1]:
            if word not in parent.commands:
                parent.add_command(Ordered(word, help=GROUPS[word]))
            parent = parent.commands[word]  # type: ignore[assignment]
        parent.add_command(command(verb))
    return top


class Ordered(click.Group):
    """Group that lists its commands in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)
