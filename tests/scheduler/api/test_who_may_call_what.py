"""The authorisation matrix: every operation of the table, every kind of caller.

A row says what each caller gets. A new route without a row fails, so nobody forgets it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

import httpx
import pytest

from benchpool_scheduler.contract import CommandEntry, JobSubmission, LeaseRequest
from benchpool_support.serving import CONFIGURATION, Served, served

pytestmark = pytest.mark.slow

CALLERS = ("nobody", "susan", "joe", "jemma", "root", "hub")
"""Nobody; the owner; another user; a lead of her project; an administrator; the Hub's service."""

ALL = dict.fromkeys(CALLERS[1:], 200) | {"nobody": 401}
OBJECT = {"nobody": 401, "susan": 200, "joe": 404, "jemma": 200, "root": 200, "hub": 200}
OPERATORS = {"nobody": 401, "susan": 403, "joe": 403, "jemma": 403, "root": 200, "hub": 200}


def all_with(status: int) -> dict[str, int]:
    return {who: status if known == 200 else known for who, known in ALL.items()}


EXPECTED: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("POST", "jobs"): ALL | {"susan": 201, "joe": 201, "jemma": 403, "root": 201, "hub": 201},
    ("POST", "preview"): ALL | {"jemma": 403},
    ("GET", "jobs"): ALL,
    ("GET", "jobs/{job}"): OBJECT,
    ("GET", "jobs/{job}/why"): OBJECT,
    ("GET", "jobs/{job}/submission"): OBJECT,
    ("POST", "jobs/{job}/pause"): OBJECT,
    ("POST", "jobs/{job}/resume"): OBJECT,
    ("POST", "jobs/{job}/cancel"): OBJECT,
    ("POST", "jobs/{job}/change"): OBJECT,
    ("POST", "jobs/{job}/rename"): OBJECT,
    ("GET", "jobs/{job}/logs"): OBJECT,
    ("GET", "jobs/{job}/logs/stream"): OBJECT,
    ("GET", "jobs/{job}/results"): OBJECT,
    ("GET", "events"): ALL,
    ("GET", "quota"): ALL,
    ("GET", "status"): ALL,
    ("POST", "leases"): OPERATORS | {"root": 201, "hub": 201},
    ("POST", "leases/line"): OPERATORS | {"root": 201, "hub": 201},
    ("GET", "leases/line"): ALL,
    ("GET", "leases"): OPERATORS,
    ("DELETE", "leases/{lease}"): OPERATORS | {"root": 204, "hub": 204},
    ("POST", "objects/missing"): ALL,
    ("PUT", "objects/{sha256}"): all_with(204),
    ("POST", "config/check"): OPERATORS,
    ("POST", "config/apply"): OPERATORS,
    ("POST", "whatif"): OPERATORS,
    ("GET", "history"): OPERATORS,
    ("GET", "health"): dict.fromkeys(CALLERS, 200),
    ("GET", "openapi.json"): ALL,
    ("GET", "metrics"): OPERATORS,
}

CONTENT = b"data"
TEXT = CONFIGURATION


@dataclass(frozen=True)
class Site:
    """A service with two jobs of susan's, one of them to be cancelled, and a lease."""

    service: Served
    job: str
    victim: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served(tmp_path_factory.mktemp("state")) as service, service.client("susan") as susan:
        entry = CommandEntry([sys.executable, "-c", "import time; time.sleep(600)"])
        job, victim = (susan.submit(JobSubmission(entry=entry, project="vision")) for _ in range(2))
        with service.client("hub") as hub:
            hub.reserve(LeaseRequest(user="susan", server="", spawn="s1", gpus=1))
        yield Site(service, job.id, victim.id)


def route_ids() -> list[tuple[str, str]]:
    return sorted(EXPECTED)


def test_every_route_has_a_row(site: Site) -> None:
    routes = site.service.api.routes
    assert {(one.operation.method, one.operation.path) for one in routes} == set(EXPECTED)


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize(("method", "path"), route_ids())
def test_a_caller_gets_what_the_matrix_says(site: Site, method: str, path: str, who: str) -> None:
    status = ask(site, method, path, who)
    assert status == EXPECTED[method, path][who]


def ask(site: Site, method: str, path: str, who: str) -> int:
    job = site.victim if path.endswith("cancel") else site.job
    names = {"job": job, "lease": "a" * 26, "sha256": sha256(CONTENT).hexdigest()}
    address = f"{site.service.url}/api/v1/{path.format(**names)}"
    headers = {} if who == "nobody" else {"Authorization": f"token {who}"}
    kind, content = body(path, who) if method in ("POST", "PUT") else (None, b"")
    if kind is not None:
        headers["Content-Type"] = kind
    with httpx.stream(method, address, headers=headers, content=content, timeout=10) as answer:
        return answer.status_code  # a stream's first bytes are enough


def body(path: str, who: str) -> tuple[str, bytes]:
    submission = b'{"entry": {"kind": "command", "argv": ["true"]}, "project": "%s"}'
    project = b"speech" if who in ("joe", "jemma") else b"vision"
    bodies = {
        "jobs": submission % project,
        "preview": submission % project,
        "leases": b'{"user": "susan", "server": "", "spawn": "s1", "gpus": 1}',
        "leases/line": b'{"lease": {"user": "susan", "server": "", "spawn": "s1", "gpus": 1}}',
        "jobs/{job}/change": b'{"priority": 60}',
        "jobs/{job}/rename": b'{"name": "other"}',
        "whatif": b'{"more_gpus": 1}',
        "objects/missing": b'{"sha256": []}',
    }
    if path.startswith("config"):
        return "text/yaml", TEXT.encode()
    if path.startswith("objects/{"):
        return "application/octet-stream", CONTENT
    return "application/json", bodies.get(path, b"{}")
