"""One table of operations defines the API; handlers, clients and tools agree with it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any, assert_type, cast, get_type_hints

import pytest

from benchpool.server import allowed
from benchpool_scheduler.api import jobs, routing
from benchpool_scheduler.cli import VERBS, plain_verbs
from benchpool_scheduler.client import AsyncClient, Client, Credentials, LogRange, PoolEvent
from benchpool_scheduler.contract import Job, JobDiscard
from benchpool_scheduler.contract.actions import JobActions
from benchpool_scheduler.contract.forms import fields
from benchpool_scheduler.contract.operation import (
    PARTS,
    Given,
    Media,
    Who,
    declared,
    given,
    operation,
)
from benchpool_scheduler.contract.operations import OPERATIONS, Operations
from benchpool_scheduler.mcp_server import tools
from benchpool_scheduler.service.jobs import commands
from benchpool_scheduler.web.routes import routes as pages

ADDRESS = Credentials("http://127.0.0.1:1/services/benchpool", "t")


def test_operation_without_handler_is_rejected() -> None:
    with pytest.raises(LookupError, match=r"without handler: .*'health'"):
        routing.bound(jobs.HANDLERS, {})


def test_handler_without_operation_is_rejected() -> None:
    class Other:
        @operation("POST", "jobs/{job}/other", Job)
        def other(self, id_: str) -> Given:
            """Stand for an operation outside the table."""
            return given(job=id_)

    every = dict.fromkeys((*OPERATIONS, Other.other), jobs.show)
    with pytest.raises(LookupError, match=r"not in the table: \['other'\]"):
        routing.bound(every, {})


@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_client_offers_every_operation(client: type[Any]) -> None:
    at = client(ADDRESS)
    methods = {name: getattr(Operations, name) for name in dir(Operations) if name[0] != "_"}
    assert set(methods.values()) == set(OPERATIONS)
    for name, one in methods.items():
        method = getattr(at, name)
        assert (
            list(inspect.signature(method).parameters)
            == [*inspect.signature(one.fill).parameters][1:]
        )
        assert method.__doc__


async def types_of_methods(plain: Client, other: AsyncClient) -> None:
    """Check the types of parameters and answers with mypy; this is never called."""
    assert_type(plain.pause("7k2m", "reason"), Job)
    assert_type(plain.jobs(all_=True), list[Job])
    assert_type(plain.events(), Iterator[PoolEvent])
    assert_type(await other.pause("7k2m"), Job)
    assert_type(other.events(after=3), AsyncIterator[PoolEvent])
    plain.pause(3)  # type: ignore[arg-type]
    plain.jobs(every=True)  # type: ignore[call-arg]


def test_operation_names_and_addresses_are_unique() -> None:
    names = [one.name for one in OPERATIONS]
    addresses = [(one.method, one.path) for one in OPERATIONS]
    assert len(set(names)) == len(names)
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: one.name)
def test_operation_declares_its_parts_and_body(one: Any) -> None:
    assert one.summary
    assert "\n" not in one.summary
    assert set(one.parts) <= set(PARTS)
    assert (one.body is not None) == (one.takes is Media.JSON)
    assert bool(one.events) == (one.gives is Media.EVENTS)


def test_jupyterlab_forwards_exactly_marked_operations() -> None:
    example = {
        "job": "a" * 26,
        "lease": "b" * 26,
        "sha256": "c" * 64,
        "node": "n",
        "schedule": "e" * 26,
        "service": "chat",
        "sweep": "d" * 26,
    }
    for one in OPERATIONS:
        assert allowed.is_forwarded(one.method, one.path.format(**example)) == one.lab
    assert len(allowed.FORWARDED) == sum(one.lab for one in OPERATIONS)


def test_tool_values_have_unique_names_and_text_answers() -> None:
    for one in OPERATIONS:
        if one.tool:
            types = [type_ for type_ in (one.query, one.body) if type_ is not None]
            names = [*one.parts, *(each for it in types for each in it.__struct_fields__)]
            assert len(set(names)) == len(names), one.name
            assert one.gives is Media.JSON or one.answer is LogRange, one.name
    assert {name for name, one in tools.offered(writes=True).items() if one.writes}.isdisjoint(
        tools.offered()
    )


def test_tools_do_not_send_code_or_delete_files() -> None:
    changing = {one.name for one in OPERATIONS if one.tool and one.audited}
    assert not changing & {"submit", "begin_sweep", "begin_schedule", "discard", "open_shell"}
    assert all(one.who is Who.CALLER for one in OPERATIONS if one.name in changing)


def test_service_handles_each_job_action_with_table_body() -> None:
    actions = {one.name: one for one in declared(JobActions)}
    assert set(commands.ACTIONS) == set(actions)
    for name, one in actions.items():
        assert get_type_hints(commands.ACTIONS[name])["asked"] is one.body, name


def test_pages_post_exactly_operations_with_forms() -> None:
    offered = {one.name for one in OPERATIONS if one.form is not None}
    rules = [rule.regex for rule in pages(cast(Any, None), cast(Any, None))]
    (actions,) = [rule for rule in rules if "verb" in rule.groupindex]
    posted = {
        name
        for name in {one.name for one in OPERATIONS}
        if actions.match(f"/services/benchpool/jobs/{'a' * 26}/{name}")
    }
    assert posted == offered
    for one in OPERATIONS:
        if one.form is not None:
            assert one.path == f"jobs/{{job}}/{one.name}"
            assert one.body is not None
            # The form for files is drawn per kind of file (``web.job_files``).
            drawn = one.body is JobDiscard
            assert drawn or all(field.kind != "flag" for field in fields(one.body))


def test_cli_has_each_plain_verb_of_table_once() -> None:
    words = [verb.path for verb in VERBS]
    assert len(set(words)) == len(words)
    for one in OPERATIONS:
        if one.verb is not None:
            (verb,) = [verb for verb in VERBS if verb.path == one.verb.words]
            assert verb.summary == one.verb.summary
            assert one.answer in plain_verbs.SHOWN
            assert all(param.opts for param in verb.params)
