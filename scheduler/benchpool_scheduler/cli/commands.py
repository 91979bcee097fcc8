"""Construction of click commands from the table of verbs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import click

from benchpool_scheduler import __version__
from benchpool_scheduler.cli import entry
from benchpool_scheduler.cli.config_verbs import SET
from benchpool_scheduler.cli.machine_verbs import MACHINE_VERBS, SHAPES
from benchpool_scheduler.cli.mcp_verb import MCP
from benchpool_scheduler.cli.pool_verbs import POOL_VERBS
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Verb, option
from benchpool_scheduler.cli.whatif_verb import WHATIF

VERBS: tuple[Verb, ...] = (*POOL_VERBS, SET, WHATIF, MCP, *MACHINE_VERBS)
"""All verbs of ``benchpool``."""

GROUPS = {
    "token": "The token of the administrator.",
    "config": "Show and change the pool's configuration and its versions.",
    "bench": "Reclaim a bench, show the queue for benches, or time the decision core.",
    "node": "Drain and uncordon machines, write notes, and set maintenance windows.",
}

JSON = option("--json", is_flag=True, help="Print one JSON value.")
WHERE = (
    option("--url", help="Address of the service; by default BENCHPOOL_URL, else the one here."),
    option("--token", help="Token of the Hub; by default BENCHPOOL_TOKEN, else the server's."),
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


def command(verb: Verb, former: tuple[str, ...] = ()) -> click.Command:
    """Return the click command of a verb, or that of its former name, which prints a warning."""

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
    name, present = (former or verb.path)[-1], " ".join(verb.path)
    return (JobCommand if verb.command else click.Command)(
        name,
        callback=run,
        hidden=bool(former),
        deprecated=f"Use `benchpool {present}`." if former else False,
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
        parent(top, verb.path).add_command(command(verb))
        if verb.replaces:
            parent(top, verb.replaces).add_command(command(verb, verb.replaces))
    return top


def parent(top: click.Group, path: tuple[str, ...]) -> click.Group:
    """Return the group of a verb with these words. Create the group if it is missing."""
    group = top
    for word in path[:-1]:
        if word not in group.commands:
            group.add_command((BenchGroup if word == "bench" else Ordered)(word, help=GROUPS[word]))
        group = cast("click.Group", group.commands[word])
    return group


class Ordered(click.Group):
    """Group that lists its commands in the order of the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands)


class BenchGroup(Ordered):
    """Group in which the name of a shape alone, as in ``bench fill``, runs ``bench time``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words, with ``time`` before those that name a shape and no command."""
        alone = not {*SHAPES}.isdisjoint(args) and self.commands.keys().isdisjoint(args)
        return super().parse_args(ctx, ["time", *args] if alone else args)
