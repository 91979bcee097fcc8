"""Answers contain no invisible or bidirectional control characters, for any submitted text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_scheduler.phrases import visible
from benchpool_support import direct
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

SIGNS = "invoice\u202efdp.exe \x1b[2Jx\u200by\u2028z"
ENTRY = {"kind": "command", "argv": ["sleep", "600"]}
LISTED = {"kind": "list", "values": [SIGNS, 1]}


def ask(
    service: Served, who: str, method: str, path: str, body: Mapping[str, Any] | None = None
) -> Any:
    with direct.Client(timeout=30) as client:
        headers = {"Authorization": f"token {who}"}
        answer = client.request(method, f"{service.url}/api/v1/{path}", headers=headers, json=body)
    assert answer.status_code < 500, answer.text
    return answer.json() if answer.content.startswith((b"{", b"[")) else answer.text


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from strings([*value, *value.values()])
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)


@pytest.fixture
def written(service: Served) -> Mapping[str, str]:
    """Write texts with such characters into every field; return the parts of paths."""
    job = ask(service, "susan", "POST", "jobs", {"entry": ENTRY})["id"]
    (node,) = ask(service, "root", "GET", "nodes")
    wanted = {"user": "susan", "server": "", "spawn": "s", "gpus": 1}
    lease = ask(service, "hub", "POST", "leases", wanted)["id"]
    machine, window = f"nodes/{node['name']}", {"begins": "2100-01-01T08:00:00Z", "lasts_s": 60}
    setting = {"key": "policy.restart_s", "value": 60}
    for who, path, body in (
        ("root", f"jobs/{job}/pause", {"reason": SIGNS}),
        ("susan", f"jobs/{job}/rename", {"name": SIGNS}),
        ("susan", f"jobs/{job}/note", {"note": SIGNS}),
        ("susan", f"jobs/{job}/change", {"tags": [SIGNS]}),
        ("susan", "jobs", {"entry": ENTRY, "name": SIGNS}),
        ("susan", "jobs", {"entry": ENTRY, "tags": [SIGNS]}),
        ("susan", "jobs", {"entry": ENTRY, "project": SIGNS}),
        ("susan", "jobs", {"entry": ENTRY, "parameters": {"mode": SIGNS}}),
        ("joe", "access/ask", {"project": "vision", "reason": SIGNS}),
        ("jemma", "access/decline", {"project": "vision", "user": "joe", "reason": SIGNS}),
        ("jemma", "access/add", {"project": "vision", "user": SIGNS, "reason": SIGNS}),
        ("root", f"leases/{lease}/ask-back", {"reason": SIGNS}),
        ("root", f"{machine}/window", {**window, "reason": SIGNS}),
        ("root", f"{machine}/drain", {"reason": SIGNS}),
        ("root", f"{machine}/note", {"text": SIGNS}),
        ("root", "config/set", {"settings": [setting], "reason": SIGNS}),
        ("root", "config/set", {"settings": [{**setting, "key": SIGNS}]}),
        ("hub", "audit/logins", {"user": SIGNS, "outcome": "refused", "way": "password"}),
    ):
        assert all(map(is_visible, strings(ask(service, who, "POST", path, body)))), path
    swept = {
        "submission": {"entry": ENTRY},
        "plan": {"parameters": {"lr": LISTED}, "metric": SIGNS},
    }
    sweep = ask(service, "susan", "POST", "sweeps", swept)["id"]
    daily = {"when": "day at 2", "zone": "UTC", "submission": {"entry": ENTRY}}
    schedule = ask(service, "susan", "POST", "schedules", daily)["id"]
    served = {"name": "answers", "submission": {"entry": {**ENTRY, "argv": ["sleep", SIGNS]}}}
    name = ask(service, "susan", "POST", "services", served)["name"]
    ask(service, "root", "POST", f"services/{name}/stop", {"reason": SIGNS})
    return {
        "job": job,
        "schedule": schedule,
        "service": name,
        "lease": lease,
        "node": node["name"],
        "sweep": sweep,
        "sha256": "0" * 64,
    }


def is_visible(text: str) -> bool:
    """Return whether every character except line breaks is visible."""
    return all(visible(line) == line for line in text.split("\n"))


def test_answers_contain_no_deceptive_characters(
    service: Served, written: Mapping[str, str]
) -> None:
    reads = [one for one in OPERATIONS if one.method == "GET" and not one.name.endswith("_stream")]
    texts = {
        (who, one.name): text
        for who in ("root", "susan", "jemma", "joe")
        for one in reads
        for text in strings(ask(service, who, "GET", one.path.format(**written)))
        if "invoice" in text or not is_visible(text)
    }
    assert {key: text for key, text in texts.items() if not is_visible(text)} == {}
    where = {name for _, name in texts}
    assert where >= {
        "access",
        "sweep",
        "sweeps",
        "audit",
        "leases",
        "nodes",
        "quota",
        "status",
        "jobs",
        "config_log",
    }
