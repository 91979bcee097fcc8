"""``%%serve``: serve a cell that answers requests, with the earlier cells that it needs."""

from __future__ import annotations

import inspect
import os
import sys
import tempfile
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchpool.cells.left_out import SERVE
from benchpool.magic import draft_of, own_values, session_of
from benchpool.magic_session import MagicSession, OwnSession
from benchpool.magic_words import HelpAsked, MagicParser, parser_of

if TYPE_CHECKING:
    from benchpool.services import ServiceHandle


def serve(ipython: Any, line: str, cell: str) -> ServiceHandle | None:
    """Serve a cell that listens on the port in ``PORT``.

    Takes the options of ``benchpool serve``, e.g. ``%%serve chat --min 0 --send model``, and some
    of its own. ``%serve --help`` lists all.
    """
    from benchpool_scheduler.errors import BenchpoolError

    try:
        return start(OwnSession(ipython), line, cell)
    except HelpAsked as asked:
        print(asked)
        return None
    except BenchpoolError as refused:
        print(refused.message, file=sys.stderr)
        return None


def start(session: MagicSession, line: str, cell: str) -> ServiceHandle:
    """Serve a cell of a session and return the service.

    Raises:
        HelpAsked: The line has ``--help``.
        BenchpoolError: The service cannot be sent, or a rule of the pool rejects it.
    """
    from benchpool import services
    from benchpool.drafts import JobOptions
    from benchpool_scheduler.contract.options import fields_of, written

    arguments = read(line)
    options = JobOptions.of(_taken(fields_of(written(arguments, os.environ))), key=uuid.uuid4().hex)
    cells, seen = session_of(session, cell)
    with tempfile.TemporaryDirectory(prefix="benchpool-values-") as folder:
        names = arguments["send"] or ()
        values = own_values(session, names, Path(folder), arguments["pickle"])
        sent = replace(options, values=values)
        draft = draft_of(cells, sent, os.environ, session.interpreter, seen)
        own = {name: arguments[name] for name in services.OWN if arguments[name] is not None}
        return services.begun(arguments["service"], draft, own)


def read(line: str) -> dict[str, Any]:
    """Return the options after ``%%serve``, with None for missing ones.

    Raises:
        InvalidInput: A word is unknown, a number is invalid, or the name is missing.

    >>> said = read("chat --min 0 --idle 10m")
    >>> said["service"], said["min"], said["idle"], said["max"]
    ('chat', 0, '10m', None)
    """
    return parser().words(line)


def _taken(fields: Mapping[str, Any]) -> dict[str, Any]:
    from benchpool_scheduler.client.service_requests import TAKEN

    return {name: one for name, one in fields.items() if name in TAKEN}


def parser() -> MagicParser:
    """Return the parser for the words after ``%%serve``."""
    from benchpool.services import OWN
    from benchpool_scheduler.client.service_requests import TAKEN, request_of
    from benchpool_scheduler.contract.options import OPTIONS

    made = parser_of(SERVE, (it for it in OPTIONS if it.field in TAKEN))
    made.add_argument("service", metavar="NAME", help="Name of the service.")
    own = made.add_argument_group("of the service, see `benchpool serve --help`")
    for name, keyword in inspect.signature(request_of).parameters.items():
        if name not in OWN:
            continue
        flag = f"--{name.replace('_', '-')}"
        if keyword.default is False:
            own.add_argument(flag, dest=name, action="store_true", default=None)
        else:
            whole = str(keyword.annotation).startswith("int")
            own.add_argument(flag, dest=name, type=int if whole else str)
    return made
