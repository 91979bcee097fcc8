"""The authorisation matrix: every operation of the table, every kind of caller, with a real Hub.

The expected status of each caller is computed from the table: who may call an operation, and
whether it concerns one job. A new operation is included automatically. If it takes a body, or has
an unknown path parameter, the test fails until an example exists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchpool_scheduler.contract.operation import Media, Operation, Who
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_support import direct
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = pytest.mark.slow

PEOPLE = ("owner", "bench", "other", "lead", "administrator", "service")
CALLERS = ("anonymous", "revoked", *PEOPLE)
"""Callers: anonymous; the owner's revoked token; susan; her notebook server; joe; jemma, who leads
susan's project; an administrator; the Hub's own service.
"""

MAY: Mapping[Who, Collection[str]] = {
    Who.PUBLIC: CALLERS,
    Who.CALLER: PEOPLE,
    Who.LEAD: ("lead", "administrator", "service"),
    Who.OPERATOR: ("administrator", "service"),
    Who.MONITOR: ("administrator", "service"),
    Who.NODE: (),
    Who.ADMIN: ("administrator", "service"),
}
HIDDEN = frozenset({"job", "schedule", "service", "sweep"})
"""Resources that are visible only to permitted callers."""
SEES_THE_JOB = ("owner", "bench", "lead", "administrator", "service")

CONTENT = b"data"
CONFIGURATION = """\
version: 1
build: {default: 0, users: {susan: 1}, reserve: 1}
projects:
  - {name: vision, quota: 2, members: [susan, "group:staff"], leads: [jemma]}
  - {name: speech, quota: 2, members: [joe]}
policy: {grace_s: 1}
"""
SLEEPER = {"kind": "command", "argv": [sys.executable, "-c", "import time; time.sleep(600)"]}
SWEPT = {"parameters": {"lr": {"kind": "list", "values": [0.1, 0.01]}}, "max_concurrent": 1}
LEASE = {"user": "susan", "server": "", "spawn": "s1", "gpus": 1}

BODIES: Mapping[str, Any] = {
    "submit": lambda who: {"entry": SLEEPER, "project": project_of(who)},
    "preview": lambda who: {"entry": SLEEPER, "project": project_of(who)},
    "pause": {"reason": "new disk"},
    "resume": {},
    "cancel": {"reason": "new disk"},
    "change": {"priority": 60},
    "rename": {"name": "other"},
    "open_shell": {},
    "type_into_shell": {"shell": "0" * 32, "number": 1},
    "note": {"note": "helps"},
    "discard": {"logs": True},
    "again": {},
    "begin_sweep": lambda who: {
        "submission": {"entry": SLEEPER, "project": project_of(who)},
        "plan": SWEPT,
    },
    "preview_sweep": lambda who: {
        "submission": {"entry": SLEEPER, "project": project_of(who)},
        "plan": SWEPT,
    },
    "stop_sweep": {"reason": "new disk"},
    "begin_schedule": lambda who: {
        "submission": {"entry": SLEEPER, "project": project_of(who)},
        "when": "night at 2",
    },
    "preview_schedule": lambda who: {
        "submission": {"entry": SLEEPER, "project": project_of(who)},
        "when": "night at 2",
    },
    "serve": lambda who: {
        "name": f"of-{who}",
        "submission": {"entry": SLEEPER, "project": project_of(who)},
    },
    "stop_service": {"reason": "new disk"},
    "remove_service": {"reason": "new disk"},
    "reserve": LEASE,
    "ask_back": {"reason": "others wait"},
    "report_bench_activity": {"kernels": 1, "busy_kernels": 0, "executions": 0},
    "wait_in_line": {"lease": LEASE},
    "ask_access": lambda who: {"project": "vision" if who == "other" else "speech"},
    "add_member": {"project": "vision", "user": "susan"},
    "remove_member": {"project": "vision", "user": "jim"},
    "decline_access": {"project": "vision", "user": "joe"},
    "change_notifications": {"events": ["failed"]},
    "missing_objects": {"sha256": []},
    "put_object": CONTENT,
    "check_config": CONFIGURATION.encode(),
    "apply_config": CONFIGURATION.encode(),
    "set_config": {"settings": [{"key": "policy.restart_s", "value": 60}]},
    "revert_config": {"version": 1},
    "whatif": {"more_gpus": 1},
    "report_login": {"user": "susan", "outcome": "done", "way": "link"},
    "adopt": {},
    "drain_node": {"reason": "new disk"},
    "open_node": {},
    "note_node": {"text": "fan is loud"},
    "report_node": {"look": 1},
    "maintain_node": {"begins": "2100-01-01T08:00:00Z", "lasts_s": 3600, "reason": "new disk"},
}
"""Example body of each operation with a body, by operation name."""

QUERIES: Mapping[str, Mapping[str, str]] = {"shell_output": {"shell": "0" * 32}}
"""Query of each operation that requires one, by operation name."""

BY_RULE: Mapping[str, Collection[int]] = {
    "discard": {409},
    "resume": {409},
    "usage": {409},
    "open_shell": {201, 403},
    "type_into_shell": {404},
    "shell_output": {404},
    "ask_back": {404},
    "parked_benches": {409},
    "park_bench": {404},
    "unpark_bench": {404},
    "report_bench_activity": {404},
    "keep_bench": {404},
    "release_bench": {404},
    "change_notifications": {403},
    "test_notifications": {403, 422},
    "enough": {200, 422},
    "remove_schedule": {404},
    "remove_service": {404},
}
"""Status codes that permitted callers get because of the state of the pool.

A running job keeps its files and has no note yet. A schedule and a service are removed once. A job
paused by an administrator is resumed only by administrators. The bench does not exist. Services get
no notifications, and this site sends no messages. A job may still be running.
"""


def project_of(who: str) -> str:
    return "speech" if who == "other" else "vision"


@dataclass(frozen=True)
class Site:
    """Pool with two jobs of susan's, one of them to be cancelled, and the token of every caller."""

    url: str
    tokens: Mapping[str, str]
    job: str
    victim: str
    node: str
    sweep: str
    schedule: str
    service: str


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("matrix")
    config = folder / "pool.yaml"
    config.write_text(CONFIGURATION)
    # More GPUs than all jobs request together, so that no job is preempted.
    with start(folder / "state", config=config, gpus=32) as up:
        for user in ("susan", "joe", "jemma"):
            up.add_user(user)
        up.start_server("susan")
        tokens = {
            "revoked": revoked_token(up, "susan"),
            "owner": up.token_of("susan"),
            "bench": token_of_bench(up, "susan"),
            "other": up.token_of("joe"),
            "lead": up.token_of("jemma"),
            "administrator": up.ready["admin_token"],
            "service": token_of_hub(up),
        }
        with up.scheduler_as(tokens["owner"]) as susan:
            made = [
                susan.post("jobs", json={"entry": SLEEPER, "project": "vision"}) for _ in range(2)
            ]
            (node,) = susan.get("nodes").json()
            swept = {"submission": {"entry": SLEEPER, "project": "vision"}, "plan": SWEPT}
            sweep = susan.post("sweeps", json=swept).json()["id"]
            timed = {"submission": swept["submission"], "when": "night at 2"}
            schedule = susan.post("schedules", json=timed).json()["id"]
            served = {"name": "answers", "submission": swept["submission"]}
            served_as = susan.post("services", json=served).json()["name"]
        with up.scheduler_as(tokens["other"]) as joe:
            assert joe.post("access/ask", json={"project": "vision"}).status_code == 200
        job, victim = (answer.json()["id"] for answer in made)
        up.wait_job(job, "running")
        api = up.ready["scheduler_api"]
        yield Site(api, tokens, job, victim, node["name"], sweep, schedule, served_as)
        up.clear()


def revoked_token(up: RunningWorkstation, user: str) -> str:
    made = up.hub.post(f"/users/{user}/tokens", json={}).json()
    assert up.hub.delete(f"/users/{user}/tokens/{made['id']}").status_code == 204
    return str(made["token"])


def token_of_bench(up: RunningWorkstation, user: str) -> str:
    environment = Path(f"/proc/{up.server_pid(user)}/environ").read_bytes().split(b"\0")
    (found,) = (one for one in environment if one.startswith(b"JUPYTERHUB_API_TOKEN="))
    return found.decode().partition("=")[2]


def token_of_hub(up: RunningWorkstation) -> str:
    facts = json.loads((up.state / "hub" / "facts.json").read_text())
    return str(facts["secrets"]["hub_token"])


def expected(one: Operation[Any], who: str) -> Collection[int]:
    """Return the status codes that the table gives this caller."""
    if who in MAY[one.who]:
        hidden = HIDDEN.intersection(one.parts) and who not in SEES_THE_JOB
        return {404} if hidden else {*one.statuses, *BY_RULE.get(one.name, ())}
    return {403} if who in PEOPLE else {401}


def test_every_operation_with_body_has_example() -> None:
    assert {one.name for one in OPERATIONS if one.takes is not None} == set(BODIES)


@pytest.mark.parametrize("who", CALLERS)
@pytest.mark.parametrize("one", OPERATIONS, ids=lambda one: str(one.name))
def test_caller_gets_status_in_table(site: Site, one: Operation[Any], who: str) -> None:
    assert ask(site, one, who) in expected(one, who)


def ask(site: Site, one: Operation[Any], who: str) -> int:
    job = site.victim if one.name == "cancel" else site.job
    parts = {"job": job, "lease": "a" * 26, "sha256": sha256(CONTENT).hexdigest()}
    parts |= {"node": site.node, "sweep": site.sweep, "schedule": site.schedule}
    parts["service"] = site.service
    path = one.path.format(**{part: parts[part] for part in one.parts})
    headers = {"Authorization": f"token {site.tokens[who]}"} if who in site.tokens else {}
    content = None
    if one.takes is not None:
        headers["Content-Type"] = one.takes.value
        content = encoded(one, who)
    with direct.stream(
        one.method,
        f"{site.url}/{path}",
        params=QUERIES.get(one.name),
        headers=headers,
        content=content,
        timeout=120,  # the Hub may be slow to identify a token for the first time
    ) as answer:
        return answer.status_code  # the first bytes of a stream suffice


def encoded(one: Operation[Any], who: str) -> bytes:
    example = BODIES[one.name]
    body = example(who) if callable(example) else example
    return json.dumps(body).encode() if one.takes is Media.JSON else body
