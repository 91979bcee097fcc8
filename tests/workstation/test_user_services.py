"""Services through the real Hub and proxy: access, sleep and wake, and a change under load."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import httpx
import pytest

from benchpool_scheduler.client import Client, Credentials
from benchpool_scheduler.contract import CommandEntry, JobSubmission
from benchpool_scheduler.contract.serving import (
    PoolService,
    ServiceAccess,
    ServiceRequest,
    ServiceState,
)
from benchpool_support import direct
from benchpool_support.hub_session import logged_in
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

NAVIGATES = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none", "Accept": "text/html"}
"""Request headers of a browser that opens a page."""

ANSWERS = """
import http.server, sys, time

class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/slow":
            time.sleep(0.3)
        said = f"{sys.argv[2]} {self.path} {self.headers.get('Authorization')}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


def answering(name: str, word: str, **more: Any) -> ServiceRequest:
    sent = JobSubmission(
        entry=CommandEntry([sys.executable, "-c", ANSWERS, "{port}", word]), project="research"
    )
    return ServiceRequest(name, sent, **more)


@contextmanager
def served(up: RunningWorkstation, asked: ServiceRequest) -> Iterator[Client]:
    """Yield a client of susan with a running service, which is removed at the end."""
    pool = f"{up.ready['url']}services/benchpool"
    with Client(Credentials(pool, up.token_of("susan"))) as susan:
        susan.serve(asked)
        try:
            until_service(susan, asked.name, lambda one: one.state is ServiceState.READY)
            yield susan
        finally:
            replicas = susan.remove_service(asked.name).replicas
            for it in replicas:
                up.wait_job(it.job, "cancelled")


def until_service(client: Client, name: str, holds: Callable[[PoolService], bool]) -> PoolService:
    return until(lambda: client.service(name), holds=holds)


def asking(up: RunningWorkstation, user: str) -> httpx.Client:
    """Return a client with a user's token."""
    headers = {"Authorization": f"token {up.token_of(user)}"}
    return direct.Client(base_url=up.ready["url"], headers=headers, timeout=60)


def test_service_admits_only_allowed_users(
    up: RunningWorkstation,
) -> None:
    path = "/services/benchpool/s/notes/deep?x=1"
    with served(up, answering("notes", "answered", access=ServiceAccess.PROJECT)):
        with logged_in(up, "joe") as browser:
            answer = browser.get(path, headers=NAVIGATES)
            assert (answer.status_code, answer.text) == (200, "answered /deep?x=1 None")
        with asking(up, "jemma") as program:
            answer = program.get(path)
            assert (answer.status_code, answer.text) == (200, "answered /deep?x=1 None")
        with asking(up, "ada") as outsider:
            answer = outsider.get(path)
            assert answer.status_code == 404
            assert "answered" not in answer.text
            assert outsider.get("/services/benchpool/s/nothing/").status_code == 404
        with direct.Client(base_url=up.ready["url"], timeout=60) as anonymous:
            answer = anonymous.get(path, headers=NAVIGATES)
            assert answer.status_code == 302
            assert "/hub/" in answer.headers["Location"]


def test_sleeping_service_releases_gpu_and_wakes_on_request(
    up: RunningWorkstation,
) -> None:
    path = "/services/benchpool/s/sleeper/"
    with served(up, answering("sleeper", "up", min_replicas=0)) as susan:
        (replica,) = susan.service("sleeper").replicas
        susan.sleep_service("sleeper")
        asleep = until_service(susan, "sleeper", lambda one: not one.replicas)
        up.wait_job(replica.job, "cancelled")
        assert asleep.state is ServiceState.ASLEEP
        with asking(up, "susan") as program:
            answer = program.get(path)
            assert answer.status_code == 503
            assert int(answer.headers["Retry-After"]) >= 1
            answer = until(
                partial(program.get, path), holds=lambda answer: answer.status_code != 503
            )
            assert (answer.status_code, answer.text[:4]) == (200, "up /")
        seen = susan.service("sleeper").times
        assert (seen.requests_per_s > 0, seen.p50_ms is not None) == (True, True)
        susan.stop_service("sleeper")
        until_service(susan, "sleeper", lambda one: not one.replicas)
        with logged_in(up, "susan") as browser:
            page = browser.get(path, headers=NAVIGATES)
            assert "susan stopped it" in page.text
        assert susan.service("sleeper").state is ServiceState.STOPPED


def test_version_change_under_load_drops_no_request(up: RunningWorkstation) -> None:
    with served(up, answering("steady", "one")) as susan, asking(up, "susan") as program:
        seen: Counter[tuple[int, str]] = Counter()
        over = threading.Event()

        def ask(path: str) -> None:
            with direct.Client(
                base_url=up.ready["url"], headers=program.headers, timeout=60
            ) as client:
                while not over.is_set():
                    answer = client.get(f"/services/benchpool/s/steady/{path}")
                    seen[answer.status_code, answer.text.partition(" ")[0]] += 1
                    over.wait(0.05)

        askers = [threading.Thread(target=ask, args=(path,)) for path in ("", "slow", "")]
        for asker in askers:
            asker.start()
        try:
            until(lambda: seen[200, "one"] >= 10, "the first version answers")
            susan.serve(answering("steady", "two", update=True))
            until_service(
                susan,
                "steady",
                lambda one: [(it.version, it.phase) for it in one.replicas] == [(2, "ready")],
            )
            before = seen[200, "two"]
            until(lambda: seen[200, "two"] >= before + 10, "the second version answers")
        finally:
            over.set()
            for asker in askers:
                asker.join()
        assert set(seen) == {(200, "one"), (200, "two")}, seen
