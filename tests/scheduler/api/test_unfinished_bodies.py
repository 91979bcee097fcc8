"""Unfinished bodies: limited in number, bytes and time, and without leftovers."""

from __future__ import annotations

import json
import resource
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from benchpool_scheduler.api import BodyBounds
from benchpool_scheduler.errors import BenchpoolError
from benchpool_support import direct
from benchpool_support.readable import readable_within
from benchpool_support.serving import Served, served
from benchpool_support.waiting import until
from benchpool_support.workstation import start

pytestmark = pytest.mark.slow

MIB = 1024 * 1024
BOUNDS = BodyBounds(
    user_requests=3, user_bytes=2 * MIB, all_requests=5, all_bytes=3 * MIB, patience_s=60.0
)
CONFIGURATION = """\
version: 1
build: {default: 0}
projects:
  - {name: vision, quota: 2, members: [susan]}
"""


@pytest.fixture
def bounded(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state", bodies=BOUNDS) as service:
        yield service


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path / "state", bodies=replace(BOUNDS, patience_s=1.0)) as service:
        yield service


@contextmanager
def unfinished(
    url: str, token: str, announced: int, sent: int = 0, path: str = "jobs", method: str = "POST"
) -> Iterator[socket.socket]:
    """Send a request without the rest of its body."""
    at = urlsplit(url)
    kind = "application/json" if method == "POST" else "application/octet-stream"
    head = (
        f"{method} {at.path}/api/v1/{path} HTTP/1.1\r\nHost: {at.netloc}\r\n"
        f"Authorization: token {token}\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {announced}\r\n\r\n"
    )
    with socket.create_connection((at.hostname or "", at.port or 0), timeout=120) as connection:
        with suppress(OSError):  # it may already be rejected
            connection.sendall(head.encode() + b" " * sent)
        yield connection


def answer(connection: socket.socket) -> tuple[int, dict[str, str], dict[str, object]]:
    """Return status, headers and error of the answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {key.lower(): value for key, value in (line.split(": ", 1) for line in lines)}
    while len(body) < int(headers["content-length"]):
        body += connection.recv(65536)
    return int(first.split()[1]), headers, json.loads(body)["error"]


def refused(connections: Sequence[socket.socket]) -> tuple[int, dict[str, str], dict[str, object]]:
    """Return the first answer; the service chooses the connection that gets it."""
    return answer(readable_within(120, connections)[0])


def test_requests_above_user_limit_are_rejected_with_number(bounded: Served) -> None:
    with ExitStack() as held:
        status, headers, error = refused(
            [held.enter_context(unfinished(bounded.url, "susan", 100 * 1024)) for _ in range(4)]
        )
        assert (status, error["code"], headers["retry-after"]) == (429, "too-many-bodies", "5")
        assert error["message"] == (
            "susan has 3 requests with a body in transfer; the limit is 3. Try again in 5 s."
        )
        with bounded.client("joe") as joe:
            assert joe.missing_objects([]).sha256 == []


def test_bytes_above_user_limit_are_rejected_with_number(bounded: Served) -> None:
    with (
        unfinished(bounded.url, "susan", 3 * MIB // 2) as one,
        unfinished(bounded.url, "susan", MIB) as other,
    ):
        status, _, error = refused([one, other])
    assert status == 429
    assert error["message"] == (
        f"With this request susan has bodies of {5 * MIB // 2} bytes in transfer; the limit is "
        f"{2 * MIB}. Try again in 5 s."
    )


def test_all_users_share_total_limit(bounded: Served) -> None:
    with (
        unfinished(bounded.url, "susan", 3 * MIB // 2) as first,
        unfinished(bounded.url, "joe", 3 * MIB // 2) as second,
        unfinished(bounded.url, "jemma", MIB) as third,
    ):
        status, _, error = refused([first, second, third])
    assert (status, error["numbers"]) == (429, {"limit": 3 * MIB, "retry_after_s": 5})


def test_upload_uses_no_memory_and_counts_as_one_request(bounded: Served) -> None:
    path = f"objects/{'0' * 64}"
    with ExitStack() as held:
        uploads = [
            held.enter_context(unfinished(bounded.url, "susan", 100 * MIB, 0, path, "PUT"))
            for _ in range(4)
        ]
        status, _, error = refused(uploads)
    assert (status, error["numbers"]) == (429, {"limit": 3, "retry_after_s": 5})


@pytest.mark.parametrize(("path", "method"), [("jobs", "POST"), (f"objects/{'0' * 64}", "PUT")])
def test_slow_body_is_rejected_with_timeout(impatient: Served, path: str, method: str) -> None:
    with unfinished(impatient.url, "susan", MIB, 1000, path, method) as slow:
        status, headers, error = answer(slow)
        assert slow.recv(1) == b""  # the connection is closed
    assert (status, error["code"], headers["retry-after"]) == (408, "too-slow", "5")
    assert "1000 bytes were received in 1 s" in str(error["message"])


def test_rejection_is_sent_before_body_ends(bounded: Served) -> None:
    answered = direct.post(
        f"{bounded.url}/api/v1/jobs",
        content=b" " * (15 * MIB),
        headers={"Authorization": "token susan", "Content-Type": "application/json"},
        timeout=30,
    )
    assert (answered.status_code, answered.json()["error"]["code"]) == (429, "too-many-bodies")


@pytest.mark.parametrize("finished", [True, False])
def test_ended_requests_no_longer_count(bounded: Served, finished: bool) -> None:
    """Ten times the limit, one after another, each answered or abandoned by its sender."""
    with bounded.client("susan") as susan:
        for _ in range(30):
            if finished:
                susan.missing_objects([])
            else:
                with unfinished(bounded.url, "susan", MIB, 1000):
                    pass

        def accepted() -> bool:
            with suppress(BenchpoolError):
                return susan.missing_objects([]).sha256 == []
            return False

        until(accepted)  # a disconnect is noticed after a moment


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Raise the descriptor limit: a thousand connections need more than the usual 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def resident(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    return psutil.Process(pid).memory_info().rss / MIB


@pytest.mark.usefixtures("many_descriptors")
def test_thousand_stalled_bodies_leak_no_memory(tmp_path: Path) -> None:
    config = tmp_path / "pool.yaml"
    config.write_text(CONFIGURATION)
    with start(tmp_path / "state", config=config, gpus=2) as up, ExitStack() as held:
        up.add_user("susan")
        token, pid = up.token_of("susan"), up.scheduler_pid()
        assert up.scheduler_as(token).get("status").status_code == 200
        url = url_of_scheduler(pid)
        before = resident(pid)
        stalled = [held.enter_context(unfinished(url, token, 16 * MIB, MIB)) for _ in range(1000)]
        for connection in stalled:
            connection.settimeout(120)
        statuses = Counter(answer(connection)[0] for connection in stalled)
        assert statuses == {408: 4, 429: 996}
        assert resident(pid) < 2 * before
        held.close()
        until(
            lambda: resident(pid),
            f"less than a tenth of the 1,000 MiB that were sent stays, of {before:.0f} MiB before",
            holds=lambda now: now < before + 100,
        )
        assert up.scheduler_as(token).get("status").status_code == 200


def url_of_scheduler(pid: int) -> str:
    """Return the address on which the scheduler itself listens, without the proxy."""
    (port,) = (
        one.laddr.port
        for one in psutil.Process(pid).net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    )
    return f"http://127.0.0.1:{port}/services/benchpool"
