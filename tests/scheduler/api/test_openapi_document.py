"""The OpenAPI document is valid, and the answers of the service match it."""

from __future__ import annotations

import re
import sys
from typing import Any

import httpx
import jsonschema
import pytest
from openapi_spec_validator import validate

from benchpool_scheduler.api import openapi
from benchpool_scheduler.contract import CommandEntry, JobSubmission, LeaseRequest
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_support import direct
from benchpool_support.serving import CONFIGURATION, Served

pytestmark = pytest.mark.slow


def test_openapi_document_is_valid() -> None:
    validate(openapi.document())


def test_service_serves_its_own_document(quiet_service: Served) -> None:
    headers = {"Authorization": "token susan"}
    answer = direct.get(f"{quiet_service.url}/api/v1/openapi.json", headers=headers)
    assert answer.json() == openapi.document()


def test_every_route_has_unique_operation_name() -> None:
    paths = openapi.document()["paths"]
    declared = {(one.method.lower(), f"/{one.path}") for one in OPERATIONS}
    described = {(method, path) for path, methods in paths.items() for method in methods}
    names = [operation["operationId"] for known in paths.values() for operation in known.values()]
    assert declared == described
    assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def job(quiet_service: Served) -> str:
    with quiet_service.client("susan") as susan:
        entry = CommandEntry([sys.executable, "-c", "print('x')"])
        sent = susan.submit(JobSubmission(entry=entry, project="vision"))
        susan.wait(sent.id)
    with quiet_service.client("hub") as hub:
        hub.reserve(LeaseRequest(user="susan", server="", spawn="s", gpus=1))
    return sent.id


SUBMISSION = {"entry": {"kind": "command", "argv": ["true"]}, "project": "vision"}

CALLS: list[tuple[str, str, Any]] = [
    ("get", "/jobs", None),
    ("post", "/jobs", SUBMISSION),
    ("post", "/preview", SUBMISSION),
    ("post", "/preview", {**SUBMISSION, "gpus": 900}),
    ("get", "/jobs/{job}", None),
    ("get", "/jobs/{job}/why", None),
    ("get", "/jobs/{job}/submission", None),
    ("get", "/jobs/{job}/code", None),
    ("post", "/jobs/{job}/pause", {}),
    ("get", "/quota", None),
    ("get", "/status", None),
    ("get", "/leases", None),
    ("post", "/leases", {"user": "susan", "server": "", "spawn": "s", "gpus": 1}),
    ("post", "/leases", {"user": "susan", "server": "b", "spawn": "t", "gpus": 9}),
    ("post", "/leases/line", {"lease": {"user": "susan", "server": "", "spawn": "s", "gpus": 1}}),
    ("post", "/objects/missing", {"sha256": ["0" * 64]}),
    ("post", "/config/check", CONFIGURATION),
    ("post", "/config/check", "version: 7"),
    ("get", "/health", None),
]


@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_answers_match_document(
    quiet_service: Served, job: str, method: str, path: str, body: Any
) -> None:
    known = openapi.document()
    answer = send(quiet_service, method, path.replace("{job}", job), body)
    operation = known["paths"][path][method]
    described = operation["responses"].get(str(answer.status_code))
    if described is None:
        assert answer.status_code >= 400
        described = known["components"]["responses"]["Error"]
    schema = described["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": known["components"]})


def send(service: Served, method: str, path: str, body: Any) -> httpx.Response:
    headers = {"Authorization": "token root"}
    address = f"{service.url}/api/v1{path}"
    if isinstance(body, str):
        headers["Content-Type"] = "text/yaml"
        return direct.request(method, address, headers=headers, content=body)
    return direct.request(method, address, headers=headers, json=body)


def test_metrics_are_prometheus_text_with_bounded_labels(quiet_service: Served, job: str) -> None:
    text = direct.get(
        f"{quiet_service.url}/api/v1/metrics", headers={"Authorization": "token hub"}
    ).text
    ended = re.search(r'benchpool_jobs_ended_total{project="vision",state="succeeded"} (.+)', text)
    assert ended is not None
    assert float(ended[1]) >= 1
    assert 'benchpool_gpus{state="build-held"} 1.0' in text
    assert 'benchpool_http_requests_total{route="submit",status="201"}' in text
    assert job not in text
