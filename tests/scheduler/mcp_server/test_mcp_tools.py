"""``benchpool mcp`` with a client of a language model: the official client over stdio."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import StdioServerParameters, stdio_client
from mcp.client import Client
from mcp.types import CallToolResult, TextContent

from benchpool_scheduler import cli
from benchpool_scheduler.contract import CommandEntry, Job, JobSubmission, Why
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_scheduler.errors import BenchpoolError, TooLarge
from benchpool_scheduler.mcp_server import tools
from benchpool_support.serving import Served, served

pytestmark = pytest.mark.slow


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state") as running:
        yield running


@asynccontextmanager
async def tools_of(service: Served, *words: str, by: str = "susan") -> AsyncIterator[Client]:
    """Start the server over stdio and yield a connected client."""
    environ = {"BENCHPOOL_URL": service.url, "BENCHPOOL_TOKEN": by}
    command = ["-m", "benchpool_scheduler.cli", "mcp", *words]
    start = StdioServerParameters(command=sys.executable, args=command, env=environ)
    async with Client(stdio_client(start)) as client:
        yield client


def text(answer: CallToolResult) -> str:
    (only,) = answer.content
    assert isinstance(only, TextContent)
    return only.text


def payload(answer: CallToolResult) -> Any:
    assert not answer.is_error, answer
    return json.loads(text(answer))


def refused(answer: CallToolResult) -> str:
    assert answer.is_error, answer
    return text(answer)


def reason_of(why: Why) -> str:
    assert why.reason is not None
    return why.reason.code


def sent(service: Served, by: str, *argv: str, gpus: int = 1) -> Job:
    with service.client(by) as client:
        return client.submit(JobSubmission(entry=CommandEntry(list(argv)), gpus=gpus))


async def test_only_read_tools_with_closed_schemas_are_offered(service: Served) -> None:
    async with tools_of(service) as client:
        offered = (await client.list_tools()).tools
    looking = {one.name for one in OPERATIONS if one.tool and not one.audited}
    assert {tool.name for tool in offered} == looking
    assert {"why", "quota", "status", "gpu_use", "report", "whatif"} <= looking
    for tool in offered:
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint


async def test_why_tool_shows_wait_reason(service: Served) -> None:
    sent(service, "susan", "sleep", "600", gpus=4)
    waits = sent(service, "susan", "sleep", "600", gpus=4)
    async with tools_of(service) as client:
        why = payload(await client.call_tool("why", {"job": waits.id}))
        listed = payload(await client.call_tool("jobs", {"limit": 1}))
        quota = payload(await client.call_tool("quota", {}))
    with service.client("susan") as own:
        assert why["reason"]["code"] == reason_of(own.why(waits.id))
    assert [job["id"] for job in listed] == [waits.id]
    assert quota["user"] == "susan"


async def test_log_tail_is_returned_as_text(service: Served) -> None:
    script = "print('first', 'x' * 40_000); print('the end of it')"
    job = sent(service, "susan", sys.executable, "-c", script)
    with service.client("susan") as own:
        own.wait(job.id)
    async with tools_of(service) as client:
        log = payload(await client.call_tool("log", {"job": job.id}))
        first = payload(await client.call_tool("log", {"job": job.id, "offset": 0, "limit": 5}))
    assert log["text"].endswith("the end of it\n")
    assert len(log["text"]) == 16 * 1024
    assert (first["text"], first["next"], first["ended"]) == ("first", 5, False)


async def test_what_if_is_answered_only_to_administrator(
    service: Served,
) -> None:
    question = {"settings": [{"key": "projects.vision.quota", "value": 1}], "more_gpus": 2}
    async with tools_of(service, by="root") as client:
        answer = payload(await client.call_tool("whatif", question))
    assert {project["name"] for project in answer["projects"]} >= {"vision", "speech"}
    async with tools_of(service) as client:
        assert "administrator" in refused(await client.call_tool("whatif", question))


async def test_refusal_keeps_service_message(service: Served) -> None:
    secret = sent(service, "joe", "sleep", "600")
    async with tools_of(service) as client:
        of_another = refused(await client.call_tool("code", {"job": secret.id}))
        wrong = refused(await client.call_tool("jobs", {"limit": 0}))
        unknown = refused(await client.call_tool("why", {"id": secret.id}))
        missing = refused(await client.call_tool("why", {}))
        no_id = refused(await client.call_tool("why", {"job": "../quota"}))
        no_tool = refused(await client.call_tool("submit", {}))
    with service.client("susan") as own, pytest.raises(BenchpoolError) as error:
        own.code(secret.id)
    assert of_another == str(error.value)
    assert "limit" in wrong
    assert unknown == "`why` takes no `id`. It takes `job`."
    assert missing == "`why` needs `job`."
    assert no_id == "'../quota' is not the ID of a job. `jobs` lists them."
    assert no_tool.startswith("There is no tool `submit`. Tools: ")


async def test_write_tools_require_flag(service: Served) -> None:
    job = sent(service, "susan", "sleep", "600")
    async with tools_of(service) as client:
        kept = refused(await client.call_tool("cancel", {"job": job.id}))
    assert "benchpool mcp --allow-writes" in kept
    async with tools_of(service, "--allow-writes") as client:
        (cancel,) = [one for one in (await client.list_tools()).tools if one.name == "cancel"]
        assert cancel.annotations is not None
        assert not cancel.annotations.read_only_hint
        payload(await client.call_tool("cancel", {"job": job.id, "reason": "its loss is NaN"}))
    with service.client("susan") as own:
        ended = own.wait(job.id)
    assert ended.state == "cancelled"


async def test_server_starts_without_pool_and_reports_it(tmp_path: Path) -> None:
    environ = {"BENCHPOOL_URL": "http://127.0.0.1:1/services/benchpool", "BENCHPOOL_TOKEN": "t"}
    command = ["-m", "benchpool_scheduler.cli", "mcp"]
    start = StdioServerParameters(command=sys.executable, args=command, env=environ)
    async with Client(stdio_client(start)) as client:
        assert "is not reachable" in refused(await client.call_tool("quota", {}))


def test_oversized_answer_is_rejected_with_size() -> None:
    with pytest.raises(TooLarge, match=r"has 293\.0 KiB; the limit is 256\.0 KiB"):
        tools.answered("x" * 300_000)


def test_missing_library_shows_install_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "benchpool_scheduler.mcp_server.serving", raising=False)
    assert cli.run(["mcp"], {}, tmp_path) == 2
    assert "pip install 'benchpool[mcp]'" in capsys.readouterr().err
