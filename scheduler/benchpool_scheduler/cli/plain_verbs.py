"""Verbs that send one request and print the answer, built from the table of operations.

Arguments are the path parts of an operation and the fields that the table marks positional. All
other fields of its query and body are options, with the bounds that the service checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from benchpool_scheduler.cli import (
    access_views,
    audit_views,
    bench_views,
    config_views,
    node_views,
    notification_views,
    peek_view,
    schedule_views,
    service_views,
    sweep_views,
    views,
    words,
)
from benchpool_scheduler.cli.screen import Screen
from benchpool_scheduler.cli.session import Session
from benchpool_scheduler.cli.verb import Options, Verb, argument, option
from benchpool_scheduler.client import Call
from benchpool_scheduler.contract import (
    AuditCheck,
    ConfigurationChange,
    InLine,
    Job,
    JobDetail,
    JobUsage,
    Lease,
    ParkedBench,
    Quota,
    SafeModeIssues,
    SentCode,
    StartEstimates,
    Why,
)
from benchpool_scheduler.contract.access import AccessRequest
from benchpool_scheduler.contract.configuration import ConfigurationText, ConfigurationVersion
from benchpool_scheduler.contract.forms import Field, PlainVerb, fields, filled_in
from benchpool_scheduler.contract.idle_benches import BenchIdleness
from benchpool_scheduler.contract.nodes import PoolNode
from benchpool_scheduler.contract.notifications import NotificationSettings, SiteKinds
from benchpool_scheduler.contract.operation import Given, Media, Operation
from benchpool_scheduler.contract.options import FLAGS
from benchpool_scheduler.contract.people import Person
from benchpool_scheduler.contract.schedules import Schedule
from benchpool_scheduler.contract.serving import PoolService
from benchpool_scheduler.contract.stacks import Peek
from benchpool_scheduler.contract.sweeps import Sweep
from benchpool_scheduler.contract.use import IdleBenches
from benchpool_scheduler.errors import BenchpoolError, InvalidInput

SHOWN: Mapping[Any, Callable[[Screen, Any], None]] = {
    Job: lambda screen, job: views.jobs(screen, [job]),
    list[Job]: views.jobs,
    JobDetail: views.job,
    Why: views.why,
    JobUsage: views.usage,
    Peek: peek_view.peek,
    SentCode: views.code,
    Quota: views.quota,
    list[Person]: views.people,
    list[InLine]: views.line,
    IdleBenches: bench_views.idle,
    list[ParkedBench]: bench_views.parked,
    ParkedBench: lambda screen, bench: screen.line(words.clean(bench.text)),
    list[BenchIdleness]: bench_views.benches,
    BenchIdleness: bench_views.answered,
    ConfigurationChange: config_views.change,
    ConfigurationText: config_views.text,
    list[ConfigurationVersion]: config_views.versions,
    AuditCheck: audit_views.audit_check,
    SafeModeIssues: views.doubts,
    StartEstimates: views.estimates,
    list[PoolNode]: node_views.nodes,
    PoolNode: node_views.node,
    AccessRequest: access_views.request,
    Lease: bench_views.reclaim_request,
    list[AccessRequest]: access_views.requests,
    NotificationSettings: notification_views.settings,
    SiteKinds: notification_views.site,
    list[Schedule]: schedule_views.schedules,
    Schedule: schedule_views.schedule,
    list[PoolService]: service_views.services,
    PoolService: service_views.service,
    list[Sweep]: sweep_views.sweeps,
    Sweep: sweep_views.sweep,
}
"""Output function for each type of answer."""


def plain(one: Operation[Any]) -> Verb:
    """Return the verb of an operation that has one in the table."""
    if one.verb is None:
        raise LookupError(f"{one.name} has no verb")
    params = tuple(_params(one, one.verb))
    run = _each if one.verb.many else _once
    return Verb(
        one.verb.words,
        one.verb.summary,
        lambda session, options: run(one, session, options),
        params,
        one.verb.details,
        replaces=one.verb.replaces,
    )


def _once(one: Operation[Any], session: Session, options: Options) -> int:
    if one.verb is not None and one.verb.reads is not None and not any(options.values()):
        one = one.verb.reads
    answer = session.client.send(_call(one, options, options["id"] if one.parts else None))
    if session.screen.json:
        session.screen.value(answer)
    else:
        if one.takes is Media.YAML:
            session.screen.line(words.clean(f"Read {options['file'].absolute()}."))
        SHOWN[one.answer](session.screen, answer)
    return 1 if getattr(answer, "ok", True) is False else 0


def _each(one: Operation[Any], session: Session, options: Options) -> int:
    """Run the operation for each job. Print the successful jobs, then raise the first refusal."""
    done: list[Job] = []
    refused: list[BenchpoolError] = []
    for id_ in options["ids"]:
        try:
            done.append(session.client.send(_call(one, options, id_)))
        except BenchpoolError as failed:
            refused.append(failed)
    if done and not session.screen.json:
        views.jobs(session.screen, done)
    for other in refused[1:]:
        session.screen.aside(f"benchpool: {other.message}")
    if refused:
        raise refused[0]
    if session.screen.json:
        session.screen.value(done)
    return 0


def _call(one: Operation[Any], options: Options, id_: str | None) -> Call[Any]:
    body: object = None
    if one.takes is Media.YAML:
        body = read(options["file"], "file")
    elif one.body is not None:
        given = {field.name: _given(field, options) for field in fields(one.body)}
        # Options that were not given keep the defaults of the body.
        body = one.body(**{name: value for name, value in given.items() if value is not None})
    asked = {
        field.name: _asked(options[field.name])
        for field in fields(one.query)
        if options.get(field.name, field.default) != field.default
    }
    part = {} if id_ is None else {one.parts[0]: id_}
    return one.ask(Given(part, asked, body))


def _asked(value: Any) -> Any:
    """Return a value as a query carries it. A path becomes its text."""
    return str(value) if isinstance(value, Path) else value


def _given(field: Field, options: Options) -> Any:
    given = options[field.name]
    if field.kind == "duration":
        return filled_in(field, [given or ""])
    return filled_in(field, given) if field.kind == "names" else given


def read(path: Path, field: str) -> str:
    """Return the text of a file. Errors: InvalidInput for ``field``."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failed:
        raise InvalidInput(f"{path} cannot be read ({failed}).", field=field) from failed


def _params(one: Operation[Any], verb: PlainVerb) -> Iterator[click.Parameter]:
    part = (one.parts or ("job",))[0]
    if one.parts:
        many = {"nargs": -1, "required": True}
        yield (
            argument("ids", metavar="ID...", **many)
            if verb.many
            else argument("id", metavar=METAVARS.get(part, part.upper()))
        )
    if one.takes is Media.YAML:
        path = click.Path(path_type=Path, dir_okay=False)
        yield argument("file", metavar="FILE", type=path)
    asked = (*fields(one.query), *(() if one.body is None else fields(one.body)))
    known = {field.name: field for field in asked if field.name not in verb.hidden}
    for name in verb.positional:
        field = known[name]
        metavar = name.upper() if field.required else f"[{name.upper()}]"
        yield argument(name, metavar=metavar, required=field.required, type=_type(field))
    for name, field in known.items():
        if name not in verb.positional:
            yield _option(field)


METAVARS = {"job": "ID", "service": "NAME"}
"""Names of path parts in the help. Other parts use their own name in capitals."""


def _option(field: Field) -> click.Option:
    name = FLAGS.get(field.name) or f"--{field.name.replace('_', '-')}"
    if field.kind == "flag":
        return option(name, field.name, is_flag=True, help=field.help)
    settings: dict[str, Any] = (
        {"required": True} if field.required else {"multiple": field.kind == "names"}
    )
    if field.kind == "duration":
        settings["metavar"] = "TIME"
    return option(name, field.name, type=_type(field), help=field.help, **settings)


def _type(field: Field) -> click.ParamType[Any] | None:
    match field.kind:
        case "choice":
            return click.Choice(list(field.choices))
        case "whole":
            return click.IntRange(field.least, field.most)
        case "number":
            return click.FloatRange(field.least, field.most)
    return None
