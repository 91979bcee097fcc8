"""``benchpool serve``: runs a program of this folder that answers requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from benchpool_scheduler.cli import entry as entries
from benchpool_scheduler.cli import (
    service_templates,
    service_views,
    submitting,
    text_files,
)
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Verb, argument, option, submit_option
from benchpool_scheduler.client import service_documents, service_requests, snapshot
from benchpool_scheduler.client.service_templates import TEMPLATES, filled, words_of
from benchpool_scheduler.contract import JobSubmission, Source
from benchpool_scheduler.contract.options import OPTIONS, fields_of, written
from benchpool_scheduler.errors import InvalidInput

_PARAMS: Sequence[click.Parameter] = (
    argument("name", metavar="NAME", required=False),
    option("-f", "--file", "file", metavar="FILE",
           type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
           help="Read the whole service, including its name, from YAML; - is standard input."),
    *(submit_option(each) for each in OPTIONS if each.field in service_requests.TAKEN),
    option("--port", type=click.IntRange(1024, 65535),
           help="Port on which the program listens; by default a free one, in PORT and for "
                "{port} in the command."),
    option("--min", "least", type=click.IntRange(0, 64), default=1, metavar="N",
           help="Minimum number of replicas; with 0 it sleeps when idle until the next request."),
    option("--max", "most", type=click.IntRange(1, 64), metavar="N",
           help="Maximum number of replicas under load; by default that of --min."),
    option("--idle", metavar="TIME", default="15m",
           help="With --min 0: time without requests before it sleeps."),
    option("--in-flight", type=click.IntRange(1, 10_000), default=8, metavar="N",
           help="Concurrent requests of one replica; more requests start another one."),
    option("--readiness", metavar="PATH", default="/",
           help="A replica gets requests once this path answers 2xx or 3xx."),
    option("--access", metavar="WHO", default="owner",
           help="Users who may open it: owner, project, group:NAME or everyone (logged in)."),
    option("--keep-prefix", is_flag=True,
           help="Pass whole paths to the program, beginning with {prefix}; by default only the "
                "part after it."),
    option("--template", type=click.Choice(list(TEMPLATES)),
           help="Serve this application with the input after the options; it sleeps when idle."),
    option("--update", is_flag=True, help="Replace the service of this name by this one."),
)  # fmt: skip

_DETAILS = """\
The program runs as a job of the pool without an end: it is restarted when it ends, and counts in
the project's quota. It listens at {host} and {port} in its command (HOST and PORT in its
environment): on loopback on one machine, on every address of its pod on a cluster. Requests pass
the Hub, which admits only the users of --access: browsers by login, programs by token. The folder's
files are sent with it as with `benchpool submit`. {prefix} in the command is the path of its
address."""


NO_FILES = snapshot.FolderSnapshot((), {}, ())


@dataclass(frozen=True, slots=True)
class WantedService:
    """Service described by a terminal command or a file.

    Attributes:
        command: Words of the command to run.
        asked: Fields of its submission. ``own``: keywords of ``service_requests.request_of``.
        travels: Whether the files of the folder are sent with it.
    """

    name: str
    command: Sequence[str]
    asked: Mapping[str, Any]
    own: Mapping[str, Any]
    travels: bool = True


def _of_words(session: Session, options: Mapping[str, Any]) -> WantedService:
    """Return the service that the options describe. Errors: InvalidInput."""
    if options["name"] is None:
        raise InvalidInput(
            "The service has no name. Use `benchpool serve NAME -- COMMAND`, or describe it in a "
            "file: `benchpool serve -f service.yaml`.",
            field="name",
        )
    asked = fields_of(written(options, session.environ))
    asked = {name: value for name, value in asked.items() if name in service_requests.TAKEN}
    own = {it: options[_WORDS.get(it, it)] for it in service_documents.OWN}
    wanted = WantedService(options["name"], options["command"], asked, own)
    return _of_template(session, options["template"], wanted) if options["template"] else wanted


def _of_template(session: Session, name: str, wanted: WantedService) -> WantedService:
    """Return a service with the defaults of a template. Given options take precedence."""
    template = TEMPLATES[name]
    word, more = words_of(name, wanted.command)
    what = service_templates.shown(session, template.shows, word)
    source = click.get_current_context().get_parameter_source
    usual = {"min": 0, "readiness": template.readiness}
    default = {
        it: value
        for it, value in usual.items()
        if source(_WORDS.get(it, it)) is not ParameterSource.COMMANDLINE
    }
    return replace(
        wanted,
        command=filled(template, what, more),
        asked={**wanted.asked, "env": {**template.env, **wanted.asked["env"]}},
        own={**wanted.own, **default},
        travels=template.travels,
    )


_WORDS = {"min": "least", "max": "most"}
"""Names of options that differ from the keywords of a service."""
BESIDE_A_FILE = frozenset({"file", "update", "json", "url", "token"})
"""Options that do not describe the service itself."""


def _of_file(options: Mapping[str, Any]) -> WantedService:
    """Return the service described by a file. Errors: InvalidInput, also for further options."""
    context = click.get_current_context()
    given = [
        it.opts[-1] if isinstance(it, click.Option) else it.human_readable_name
        for it in context.command.params
        if it.name not in BESIDE_A_FILE
        and context.get_parameter_source(it.name or "") is ParameterSource.COMMANDLINE
    ]
    extra = [*given, *(["what runs"] if options["command"] else [])]
    if extra:
        raise InvalidInput(
            f"--file describes the whole service. Leave out {' and '.join(extra)}, or --file.",
            field="file",
        )
    path = options["file"]
    source = "standard input" if str(path) == "-" else str(path)
    # Imported here, because no other verb needs it.
    from benchpool_scheduler.cli import service_yaml

    document = service_yaml.read(text_files.read(path), source)
    values = {it: getattr(document, it) for it in service_documents.ASKED}
    return WantedService(
        document.name,
        service_documents.entry_of(document),
        fields_of(values),
        {it: getattr(document, it) for it in service_documents.OWN},
    )


def serve(session: Session, options: Mapping[str, Any]) -> int:
    """Create or update a service and print its address."""
    wanted = _of_file(options) if options["file"] else _of_words(session, options)
    entry = entries.read(wanted.command, session.folder)
    files = submitting.taken_files(session, entry) if wanted.travels else NO_FILES
    submission = JobSubmission(
        entry=entry,
        **wanted.asked,
        interpreter=entries.interpreter(session.environ),
        files=list(files.files),
        source=Source(kind="terminal", path=str(session.folder)),
    )
    request = service_requests.request_of(
        wanted.name, submission, **wanted.own, update=options["update"]
    )
    submitting.check_imports(session, submission, wanted.command)
    if wanted.travels:
        submitting.print_code_warnings(session, submission, wanted.command)
    snapshot.upload(session.client, files.contents)
    one = session.client.serve(request)
    if session.screen.json:
        session.screen.value(one)
        return 0
    service_views.service(session.screen, one)
    session.screen.line(
        f"Show it: benchpool service {one.name}; end it: benchpool stop-service {one.name} or "
        f"remove-service {one.name}"
    )
    return 0


SERVE = Verb(("serve",), "Serve a program of this folder at an address of the Hub.", serve,
             tuple(_PARAMS), _DETAILS, command=True)  # fmt: skip
