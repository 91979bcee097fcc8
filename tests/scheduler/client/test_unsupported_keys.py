"""Client message for a key that the service does not support."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchpool_scheduler import __version__
from benchpool_scheduler.client import AsyncClient, Client, Credentials
from benchpool_scheduler.client.other_versions import lacking
from benchpool_scheduler.contract import JobSubmission, ScriptEntry
from benchpool_scheduler.contract.operations import Operations
from benchpool_scheduler.contract.spec import IfHanging
from benchpool_scheduler.errors import InvalidInput

BEFORE = json.dumps(
    {
        "error": {
            "code": "unknown-key",
            "message": "There is no key if_hanging here; see the reference for those there are.",
            "field": "if_hanging",
            "numbers": {},
        }
    }
).encode()
"""Answer of the service before ``if_hanging``, byte by byte except for blanks."""
ASKS = JobSubmission(entry=ScriptEntry("train.py"), if_hanging=IfHanging.REQUEUE)


@contextmanager
def service(refusal: bytes, document: bytes | None) -> Iterator[Credentials]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/api/v1/openapi.json" and document is not None
            self._reply(200 if known else 503, document or b"")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._reply(422, refusal)

        def _reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield Credentials(f"http://127.0.0.1:{server.server_port}", "secret")
        finally:
            server.shutdown()
            thread.join()


def document(version: str) -> bytes:
    return json.dumps({"openapi": "3.1.0", "info": {"version": version}}).encode()


def test_older_service_is_named_with_both_versions_and_option() -> None:
    with (
        service(BEFORE, document("0.0.9")) as at,
        Client(at) as client,
        pytest.raises(InvalidInput) as refused,
    ):
        client.submit(ASKS)
    assert refused.value.message == (
        f"This service is older (0.0.9) than your benchpool ({__version__}) and does not know "
        "`if_hanging` (--if-hanging). Leave it out, or update the service."
    )
    assert (refused.value.code, refused.value.field) == ("unknown-key", "if_hanging")


async def test_async_client_reports_older_service() -> None:
    with service(BEFORE, document("0.0.9")) as at:
        async with AsyncClient(at) as client:
            with pytest.raises(InvalidInput, match=r"^This service is older \(0\.0\.9\)"):
                await client.preview(ASKS)


def test_unreadable_version_is_not_reported_as_older() -> None:
    with (
        service(BEFORE, None) as at,
        Client(at) as client,
        pytest.raises(InvalidInput, match=r"^This service does not know `if_hanging`"),
    ):
        client.submit(ASKS)


@pytest.mark.parametrize(
    ("there", "begins"),
    [
        ("0.2.0", "This service has the version of your benchpool (0.2.0), but was built before"),
        ("0.10.0", "This service (0.10.0) does not know `if_hanging`"),
        ("0.2.0.dev1", "This service (0.2.0.dev1) does not know `if_hanging`"),
    ],
)
def test_service_not_older_is_not_reported_as_older(there: str, begins: str) -> None:
    failed = InvalidInput("There is no key if_hanging here.", field="if_hanging")
    error = lacking(Operations.submit.call(ASKS), failed, json.loads(document(there)), "0.2.0")
    assert error.message.startswith(begins)
    assert "older" not in error.message


def test_key_unknown_to_client_keeps_service_message() -> None:
    refusal = BEFORE.replace(b"if_hanging", b"if_flying")
    with (
        service(refusal, document("0.0.9")) as at,
        Client(at) as client,
        pytest.raises(InvalidInput, match=r"^There is no key if_flying here; see"),
    ):
        client.submit(ASKS)
