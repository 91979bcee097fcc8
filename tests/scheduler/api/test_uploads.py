"""Uploads of contents: announced, verified, limited; an interrupted upload leaves no file."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from benchpool_scheduler.service.jobs.uploads import OBJECT_BYTES
from benchpool_support import direct
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

CONTENT = b"0123456789" * 100_000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
HEADERS = {"Authorization": "token susan", "Content-Type": "application/octet-stream"}


def put(service: Served, content: bytes | Iterator[bytes], **headers: str) -> httpx.Response:
    address = f"{service.url}/api/v1/objects/{SHA256}"
    return direct.put(address, content=content, headers={**HEADERS, **headers}, timeout=30)


def missing(service: Served, user: str = "susan") -> list[str]:
    with service.client(user) as client:
        return client.missing_objects([SHA256]).sha256


def test_content_is_stored_if_hash_matches(service: Served) -> None:
    assert missing(service) == [SHA256]
    assert put(service, CONTENT).status_code == 204
    assert missing(service) == []
    assert put(service, CONTENT).status_code == 204


def test_content_of_another_user_is_still_missing(service: Served) -> None:
    put(service, CONTENT)
    assert missing(service, "joe") == [SHA256]


@pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x", CONTENT[:-1] + b"X"])
def test_content_with_wrong_hash_is_rejected(service: Served, content: bytes) -> None:
    answer = put(service, content)
    assert answer.status_code == 422
    assert missing(service) == [SHA256]


def test_upload_without_length_is_rejected(service: Served) -> None:
    answer = put(service, iter([CONTENT]))
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "Content-Length")


def test_oversized_upload_is_rejected_before_reading(service: Served) -> None:
    at = urlsplit(service.url)
    head = (
        f"PUT {at.path}/api/v1/objects/{SHA256} HTTP/1.1\r\nHost: x\r\n"
        "Authorization: token susan\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {OBJECT_BYTES + 1}\r\n\r\n"
    )
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=60) as connection:
        connection.sendall(head.encode())
        assert b" 413 " in connection.recv(4096)


def test_upload_without_token_is_rejected(service: Served) -> None:
    assert put(service, CONTENT, Authorization="token stranger").status_code == 401


def test_interrupted_upload_leaves_no_file(service: Served, tmp_path: Path) -> None:
    at = urlsplit(service.url)
    head = (
        f"PUT {at.path}/api/v1/objects/{SHA256} HTTP/1.1\r\nHost: x\r\n"
        "Authorization: token susan\r\nContent-Type: application/octet-stream\r\n"
        f"Content-Length: {len(CONTENT)}\r\n\r\n"
    )
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=60) as connection:
        connection.sendall(head.encode() + CONTENT[:500_000])
    assert put(service, CONTENT).status_code == 204
    kept = [path for path in (tmp_path / "state" / "objects").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [CONTENT]
