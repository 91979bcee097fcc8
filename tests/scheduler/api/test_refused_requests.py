"""Rejected requests: one error object with a sentence, field and limit, and never status 5xx."""

from __future__ import annotations

import itertools
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchpool_scheduler.contract import ErrorAnswer, ErrorBody
from benchpool_scheduler.contract.operation import Operation
from benchpool_scheduler.contract.operations import OPERATIONS
from benchpool_support import direct
from benchpool_support.examples import examples
from benchpool_support.serving import Served

pytestmark = pytest.mark.slow

HTTP = direct.Client(verify=False, timeout=30)
ENTRY = b'"entry": {"kind": "command", "argv": ["true"]}'


def send(
    service: Served, body: bytes, path: str = "preview", kind: str = "application/json"
) -> httpx.Response:
    headers = {"Authorization": "token susan", "Content-Type": kind}
    return HTTP.post(f"{service.url}/api/v1/{path}", content=body, headers=headers)


def error_of(answer: httpx.Response) -> ErrorBody:
    return msgspec.json.decode(answer.content, type=ErrorAnswer).error


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"0", "gpus is 0; it must be a whole number >= 1."),
        (b"-1", "gpus is -1; it must be a whole number >= 1."),
        (b"1.0", "gpus is 1.0; it must be a whole number."),
        (b"1.5", "gpus is 1.5; it must be a whole number."),
        (b"true", "gpus is true; it must be a whole number."),
        (b'"4"', 'gpus is "4"; it must be a whole number.'),
        (b"null", "gpus is null; it must be a whole number."),
        (b"1025", "gpus is 1025; it must be a whole number <= 1024."),
        (b"1000000000", "gpus is 1000000000; it must be a whole number <= 1024."),
        (b"[1]", "gpus is a list; it must be a whole number."),
        (b'{"a": 1}', "gpus is an object; it must be a whole number."),
    ],
)
def test_invalid_gpu_count_is_rejected_with_limit(
    quiet_service: Served, value: bytes, message: str
) -> None:
    answer = send(quiet_service, b'{%s, "gpus": %s}' % (ENTRY, value))
    error = error_of(answer)
    assert (answer.status_code, error.field, error.message) == (422, "gpus", message)


@pytest.mark.parametrize("value", [b"NaN", b"Infinity", b"1e999", b"9" * 5000, b"0x10", b"01"])
def test_invalid_numbers_are_rejected(quiet_service: Served, value: bytes) -> None:
    answer = send(quiet_service, b'{%s, "gpus": %s}' % (ENTRY, value))
    assert answer.status_code in (400, 422)
    assert len(error_of(answer).message) < 300


def test_unknown_key_suggests_nearest_key(quiet_service: Served) -> None:
    answer = send(quiet_service, b'{%s, "gpu": 1}' % ENTRY)
    error = error_of(answer)
    assert (error.code, error.field) == ("unknown-key", "gpu")
    assert "the nearest one is gpus" in error.message


def test_unknown_parameter_suggests_nearest_parameter(quiet_service: Served) -> None:
    headers = {"Authorization": "token susan"}
    answer = direct.get(f"{quiet_service.url}/api/v1/jobs?projct=a", headers=headers)
    assert answer.status_code == 422
    assert "the nearest one is project" in error_of(answer).message


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"entry": {"x": ' + b"[" * 100_000, "application/json", 400),
        (b"[" * 100_000, "application/json", 422),
        (b"{}", "application/json", 422),
        (b"[]", "application/json", 422),
        (b"{}", "text/plain", 400),
        (b"gpus=1", "application/x-www-form-urlencoded", 400),
        (b'{"entry": {"kind": "shell"}}', "application/json", 422),
        (b'{"entry": {"kind": "module", "module": "a\\n"}}', "application/json", 422),
    ],
)
def test_invalid_submission_body_is_rejected(
    quiet_service: Served, body: bytes, kind: str, status: int
) -> None:
    answer = send(quiet_service, body, kind=kind)
    assert answer.status_code == status
    assert error_of(answer).message


def test_oversized_body_is_rejected_with_both_sizes(quiet_service: Served) -> None:
    answer = send(quiet_service, b" " * 70_000, path="leases/../objects/missing")
    assert answer.status_code == 400  # within that route's size limit, but no JSON
    answer = send(quiet_service, b" " * (17 * 1024 * 1024))
    error = error_of(answer)
    assert (answer.status_code, error.code) == (413, "body-too-large")
    assert error.numbers == {"bytes": 17 * 1024 * 1024, "limit": 16 * 1024 * 1024}


def test_unauthenticated_and_forbidden_have_different_status(quiet_service: Served) -> None:
    address = f"{quiet_service.url}/api/v1/metrics"
    anonymous = direct.get(address)
    susan = direct.get(address, headers={"Authorization": "token susan"})
    assert (anonymous.status_code, susan.status_code) == (401, 403)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "POST"])
def test_unknown_method_is_rejected_in_same_form(quiet_service: Served, method: str) -> None:
    answer = direct.request(method, f"{quiet_service.url}/api/v1/status")
    assert (answer.status_code, error_of(answer).code) == (405, "method")


@pytest.mark.parametrize(
    "path", ["", "nothing", "jobs/", "jobs/ABCD", "jobs/abc", "jobs/..%2f..", "leases/x", "v2/jobs"]
)
def test_unknown_path_is_rejected_in_same_form(quiet_service: Served, path: str) -> None:
    headers = {"Authorization": "token susan"}
    answer = direct.get(f"{quiet_service.url}/api/v1/{path}", headers=headers)
    assert (answer.status_code, error_of(answer).code) == (404, "not-found")


def test_answers_are_not_sniffed_or_cached(quiet_service: Served) -> None:
    for path in ("status", "health", "nothing"):
        headers = direct.get(f"{quiet_service.url}/api/v1/{path}").headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "Server" not in headers


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
KEYS = st.sampled_from(
    ["entry", "name", "project", "gpus", "workers", "min_workers", "priority", "preemptible",
     "time_limit_s", "env", "key", "interpreter", "working_dir", "output_dir", "files", "source"]
)  # fmt: skip
ENTRIES = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("script"), "path": st.text(max_size=20)},
        optional={"args": st.lists(st.text(max_size=9), max_size=3)},
    ),
    st.fixed_dictionaries({"kind": st.just("command"), "argv": st.lists(st.text(max_size=9))}),
    JSON_VALUES,
)
SUBMISSIONS = st.builds(
    lambda entry, rest: {**rest, "entry": entry}, ENTRIES, st.dictionaries(KEYS, JSON_VALUES)
)


@settings(
    max_examples=examples(300),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(path=st.sampled_from(["preview", "jobs"]), body=SUBMISSIONS)
def test_random_json_body_causes_no_server_error(
    quiet_service: Served, path: str, body: dict[str, Any]
) -> None:
    answer = send(quiet_service, msgspec.json.encode(body), path=path)
    assert answer.status_code < 500, answer.text


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=st.binary(max_size=200), path=st.sampled_from(["preview", "objects/missing", "leases"]))
def test_random_bytes_cause_no_server_error(quiet_service: Served, path: str, body: bytes) -> None:
    assert send(quiet_service, body, path=path).status_code < 500


VALUES = (
    *(
        "",
        "-1",
        "nan",
        "1e400",
        "9" * 30,
        "\0",
        "\u202e",
        "\u0663",
        "x" * 300,
        "[]",
        "=1+1",
        "../..",
    ),
    *("0000-01", "9999-12", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-14:00"),
    *("0001-01-01T00:00:00+14:00", "1970-01-01T00:00:00Z", "2026-11-23T00:00:00", "2026-02-30"),
)
"""Invalid query values: non-numbers, times at the ends of the calendar, special characters."""

PARTS = {"sha256": "0" * 64, "node": "n"}
"""Values of path parameters that are no IDs."""

READS = [one for one in OPERATIONS if one.method == "GET" and one.query is not None]


@pytest.mark.parametrize("one", READS, ids=lambda one: str(one.name))
def test_random_path_causes_no_server_error(quiet_service: Served, one: Operation[Any]) -> None:
    parts = {name: PARTS.get(name, "a" * 26) for name in one.parts}
    address = f"{quiet_service.url}/api/v1/{one.path.format(**parts)}"
    assert one.query is not None
    for field, value in itertools.product(one.query.__struct_fields__, VALUES):
        headers = {"Authorization": "token root"}
        with HTTP.stream("GET", address, params={field: value}, headers=headers) as answer:
            assert answer.status_code < 500, (field, value)
