"""Command line: ``benchpool``.

Exit status: 0 done, 2 wrong usage or invalid input, 3 refused by a rule, 4 not reachable, 1
otherwise. ``submit --wait`` exits with the status of the job (formats, section 5).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from benchpool_scheduler.cli.commands import VERBS, group
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

__all__ = ["VERBS", "main", "run"]

INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:], os.environ, Path.cwd()))


def run(words: Sequence[str], environ: Mapping[str, str], folder: Path) -> int:
    """Run one command line and return its exit status."""
    session = Session(environ, folder)
    # Set before the words are parsed, so that usage errors are JSON too.
    session.screen.json = "--json" in words
    try:
        status = group().main(
            list(words), prog_name="benchpool", standalone_mode=False, obj=session
        )
        return int(status or 0)
    except click.ClickException as wrong:
        return _refuse(session, _wrong_use(wrong))
    except BenchpoolError as error:
        return _refuse(session, error)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output has exited, as with `| head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        session.close()


def _refuse(session: Session, error: BenchpoolError) -> int:
    session.screen.error(error)
    return error.exit_status


def _wrong_use(wrong: click.ClickException) -> BenchpoolError:
    parameter = getattr(wrong, "param", None)
    context = getattr(wrong, "ctx", None)
    help_ = f" See `{context.command_path} --help`." if context else ""
    text = wrong.format_message().replace("\n", " ").rstrip(".")
    name = parameter.name if parameter is not None else None
    return InvalidInput(f"{text}.{help_}", code="wrong-use", field=name)
