"""Both clients against the real service: retries, errors, streams, uploads."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchpool_scheduler.client import AsyncClient, Client, Credentials, answers, snapshot
from benchpool_scheduler.client.answers import not_reachable
from benchpool_scheduler.contract import CommandEntry, JobSubmission, LeaseRequest, State
from benchpool_scheduler.contract.operation import given
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.errors import (
    InvalidInput,
    NotAuthenticated,
    Refused,
    ServerFault,
    TooLarge,
    TooMany,
    Unavailable,
)
from benchpool_support.loopback import free_port
from benchpool_support.serving import Served, served

pytestmark = pytest.mark.slow


def run(program: str) -> JobSubmission:
    return JobSubmission(entry=CommandEntry([sys.executable, "-c", program]))


def test_both_clients_have_equal_methods_and_parameters() -> None:
    def verbs(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(method).parameters)
            for name, method in vars(kind).items()
            if not name.startswith("_") and callable(method)
        }

    assert verbs(Client) == verbs(AsyncClient)


async def test_async_client_follows_job_to_end(service: Served) -> None:
    async with AsyncClient(service.credentials("susan")) as susan:
        job = await susan.submit(run("print('hello')"))
        text = "".join([piece.text async for piece in susan.follow_log(job.id)])
        ended = await susan.wait(job.id)
    assert (text, ended.state) == ("hello\n", State.SUCCEEDED)


async def test_sync_client_works_inside_event_loop(service: Served) -> None:
    with service.client("susan") as susan:
        assert susan.jobs() == []


async def test_uploads_are_checked_against_hash(service: Served, tmp_path: Path) -> None:
    content = b"x" * 3_000_000
    sha256 = hashlib.sha256(content).hexdigest()
    (tmp_path / "file").write_bytes(content)
    async with AsyncClient(service.credentials("susan")) as susan:
        with pytest.raises(InvalidInput):
            await susan.put_object(sha256, b"something else")
        assert (await susan.missing_objects([sha256])).sha256 == [sha256]
        await susan.put_object(sha256, tmp_path / "file")
        assert (await susan.missing_objects([sha256])).sha256 == []


@pytest.mark.parametrize("later", [b"123", b"1", b"1" + b"2" * 3_000_000])
async def test_file_changed_during_upload_is_named(
    service: Served, tmp_path: Path, later: bytes
) -> None:
    log = tmp_path / "code" / "train.log"
    log.parent.mkdir()
    log.write_bytes(b"12")
    taken = snapshot.take(log.parent)
    log.write_bytes(later)
    with service.client("susan") as plain, pytest.raises(InvalidInput, match=r"train\.log changed"):
        snapshot.upload(plain, taken.contents)
    async with AsyncClient(service.credentials("susan")) as susan:
        with pytest.raises(InvalidInput, match=r"train\.log changed"):
            await snapshot.upload_async(susan, taken.contents)
        log.write_bytes(b"12")
        assert await snapshot.upload_async(susan, taken.contents) == 1


def test_error_keeps_message_code_and_numbers(service: Served) -> None:
    with service.client("hub") as hub, pytest.raises(Refused) as refused:
        hub.reserve(LeaseRequest(user="susan", server="", spawn="s", gpus=2))
    assert refused.value.code == "build-quota"
    assert refused.value.numbers
    assert "susan" in refused.value.message


def test_unknown_token_is_not_authenticated(service: Served) -> None:
    with service.client("stranger") as unknown, pytest.raises(NotAuthenticated):
        unknown.jobs()


def test_unreachable_service_is_named_with_remedy() -> None:
    url = "http://127.0.0.1:1/services/benchpool"
    with (
        Client(Credentials(url, "t")) as client,
        pytest.raises(Unavailable, match=f"{url} is not reachable.*benchpool up"),
    ):
        client.status()


def test_remote_service_error_does_not_advise_benchpool_up() -> None:
    message = not_reachable("https://gpu.example.org/services/benchpool", "refused").message
    assert "benchpool up" not in message
    assert "ask an administrator of the pool" in message


def test_proxy_error_has_advice_for_its_status() -> None:
    for status, kind, advice in ((413, TooLarge, "Send less."), (429, TooMany, "in a minute.")):
        refused = answers.error(status, {}, b"<html>", "https://gpu.example.org")
        assert isinstance(refused, kind)
        assert refused.message.endswith(advice)


def test_retries_outlast_service_restart(tmp_path: Path) -> None:
    port = free_port()  # no other process uses it between the two
    with served(tmp_path / "state", port=port) as first:
        pass
    answers: list[object] = []
    with first.client("susan", patience_s=120) as client:
        asking = threading.Thread(target=lambda: answers.append(client.submit(run("pass"))))
        asking.start()
        with served(tmp_path / "state", port=port) as second, second.client("susan") as other:
            asking.join(120)
            assert len(other.jobs()) == 1
    assert len(answers) == 1


def test_only_idempotent_requests_are_retried() -> None:
    with answering(503, b"") as credentials, Client(credentials, patience_s=3.0) as client:
        with pytest.raises(Unavailable):
            client.send(Operations.submit.ask(given(run("pass"))))
        assert len(SEEN) == 1
        with pytest.raises(Unavailable):
            client.status()
        assert len(SEEN) > 2


def test_keyed_retries_time_out_with_last_cause() -> None:
    messages: list[str] = []
    with (
        answering(503, b"<html>") as credentials,
        Client(credentials, keyed_patience_s=4, on_wait=messages.append) as client,
        pytest.raises(Unavailable, match="HTTP 503"),
    ):
        client.submit(run("pass"))
    assert len(SEEN) >= 2
    assert [text.partition("; ")[2] for text in messages] == ["trying again for up to 4 s."]


def test_safe_mode_error_is_not_retried() -> None:
    body = b'{"error": {"code": "safe-mode", "message": "Lost.", "field": null, "numbers": {}}}'
    with (
        answering(503, body) as credentials,
        Client(credentials, keyed_patience_s=60) as client,
        pytest.raises(Unavailable, match="Lost"),
    ):
        client.submit(run("pass"))
    assert len(SEEN) == 1


@pytest.mark.parametrize(
    ("status", "page"), [(404, b"<html>"), (403, b"<html>"), (302, b""), (200, b"<html>")]
)
def test_html_answer_to_keyed_request_is_retried(status: int, page: bytes) -> None:
    with (
        answering(status, page, refused_after=2) as credentials,
        Client(credentials, keyed_patience_s=60) as client,
        pytest.raises(InvalidInput, match="Enough"),
    ):
        client.submit(run("pass"))
    assert len(SEEN) == 3


SEEN: list[str] = []
"""Requests received by the fixed answer of the running test."""

REFUSAL = b'{"error": {"code": "bad", "message": "Enough.", "field": null, "numbers": {}}}'


@contextmanager
def answering(status: int, body: bytes, refused_after: int = 1_000) -> Iterator[Credentials]:
    """Serve a fixed answer, as a proxy without its service, and then a rejection by the service."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            SEEN.append(self.path)
            now, payload = (status, body) if len(SEEN) <= refused_after else (400, REFUSAL)
            self.send_response(now)
            self.send_header("Content-Length", str(len(payload)))
            self.send_header("Location", "http://127.0.0.1:1/steal")
            self.end_headers()
            self.wfile.write(payload)

        do_POST = do_GET

        def log_message(self, *args: object) -> None:
            pass

    SEEN.clear()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Credentials(f"http://127.0.0.1:{server.server_port}/services/benchpool", "t")
        server.shutdown()


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (403, {}, b"<!DOCTYPE HTML><html>403 : Forbidden</html>"),
        (302, {"Location": "/hub/services/benchpool/api/v1/jobs"}, b""),
    ],
)
def test_hub_answer_in_place_of_pool_is_unavailable(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    """A restarted proxy sends requests for the pool to the Hub."""
    found = answers.error(status, headers, body, "http://pool")
    assert isinstance(found, Unavailable)
    assert found.message.startswith("The pool is down: the Hub or a proxy answers at http://pool")
    elsewhere = answers.error(302, {"Location": "https://login.example.org"}, b"", "http://pool")
    assert isinstance(elsewhere, NotAuthenticated)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (503, b"<html>", Unavailable),
        (502, b"", Unavailable),
        (404, b"<html>no such route</html>", Unavailable),
        (302, b"", NotAuthenticated),
        (403, b"", NotAuthenticated),
        (403, b"<html>", Unavailable),
        (200, b"<html>", ServerFault),
        (200, b'{"text": 1}', ServerFault),
        (500, b'{"error": {"code": "x", "message": "m", "field": null, "numbers": {}}}',
         ServerFault),
    ],
)  # fmt: skip
def test_foreign_answers_become_descriptive_errors(
    status: int, body: bytes, error: type[Exception]
) -> None:
    with answering(status, body) as credentials, Client(credentials) as client:
        with pytest.raises(error):
            client.status()
        asynchronous = AsyncClient(credentials)
        with pytest.raises(error):
            asyncio.run(asynchronous.status())
