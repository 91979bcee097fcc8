"""Identification of callers by a real JupyterHub: tokens, scopes, groups, sessions, forgeries."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchpool_scheduler.api import Timing
from benchpool_scheduler.api.identity import CACHE_S
from benchpool_scheduler.workstation import login_keys
from benchpool_support import direct
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation, start

pytestmark = pytest.mark.slow

CONFIGURATION = """\
version: 1
build: {default: 0, users: {susan: 1}, reserve: 1}
projects:
  - {name: vision, quota: 2, members: [susan]}
  - {name: shared, quota: 1, members: ["group:staff"]}
"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    folder: Path = tmp_path_factory.mktemp("hub")
    config = folder / "pool.yaml"
    config.write_text(CONFIGURATION)
    with start(folder / "state", config=config, gpus=4) as running:
        for user in ("susan", "joe"):
            running.add_user(user)
        assert running.hub.post("/groups/staff").status_code == 201
        assert running.hub.post("/groups/staff/users", json={"users": ["joe"]}).is_success
        yield running


@pytest.fixture(scope="module")
def browser(up: RunningWorkstation) -> Iterator[httpx.Client]:
    """Susan's logged-in browser with an open page of benchpool."""
    with direct.Client(follow_redirects=True, timeout=30) as client:
        client.get(
            login_keys.for_running(up.state, "susan"), headers={"Sec-Fetch-Mode": "navigate"}
        )
        page = client.get(
            f"{up.ready['url']}services/benchpool/", headers={"Sec-Fetch-Mode": "navigate"}
        )
        assert page.status_code == 200
        assert page.url.path == "/services/benchpool/"
        yield client


def api(up: RunningWorkstation, path: str) -> str:
    return f"{up.ready['scheduler_api']}/{path}"


def xsrf(browser: httpx.Client) -> str:
    (token,) = (
        cookie.value
        for cookie in browser.cookies.jar
        if cookie.name == "_xsrf" and cookie.path == "/services/benchpool/"
    )
    assert token is not None
    return token


SCRIPT = {"Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin"}


def test_token_identifies_its_user(up: RunningWorkstation) -> None:
    for user in ("susan", "joe"):
        with up.scheduler_as(up.token_of(user)) as client:
            assert client.get("quota").json()["user"] == user


def test_hub_groups_are_project_members(up: RunningWorkstation) -> None:
    with up.scheduler_as(up.token_of("joe")) as joe:
        assert [one["name"] for one in joe.get("quota").json()["projects"]] == ["shared"]


def test_hub_administrator_is_pool_administrator(up: RunningWorkstation) -> None:
    assert up.scheduler.get("metrics").status_code == 200
    with up.scheduler_as(up.token_of("susan")) as susan:
        assert susan.get("metrics").status_code == 403


def test_metrics_token_opens_metrics_but_nothing_of_hub(
    up: RunningWorkstation,
) -> None:
    token = (up.state / "metrics-token").read_text().strip()
    with up.scheduler_as(token) as prometheus:
        assert "benchpool_leading 1.0" in prometheus.get("metrics").text
        assert prometheus.get("status").status_code == 401


def test_token_without_service_scope_is_rejected(up: RunningWorkstation) -> None:
    made = up.hub.post("/users/susan/tokens", json={"scopes": ["read:users!user=susan"]})
    with up.scheduler_as(made.json()["token"]) as narrow:
        answer = narrow.get("status")
    assert answer.status_code == 403
    message = answer.json()["error"]["message"]
    assert message.startswith("The token of susan is not for benchpool. Create one with the scope ")
    scope = message.partition("the scope ")[2].split()[0]
    made = up.hub.post("/users/susan/tokens", json={"scopes": [scope]})
    with up.scheduler_as(made.json()["token"]) as wide:
        assert wide.get("status").status_code == 200


@pytest.mark.parametrize("header", ["token nonsense", "Basic c3VzYW46eA==", "Bearer", ""])
def test_unauthenticated_request_is_rejected_without_redirect(
    up: RunningWorkstation, header: str
) -> None:
    answer = direct.get(api(up, "status"), headers={"Authorization": header})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "not-authenticated")


def test_token_in_url_is_ignored(up: RunningWorkstation) -> None:
    answer = direct.get(api(up, f"status?token={up.token_of('susan')}"))
    assert answer.status_code in (401, 422)


def test_pool_page_reads_with_its_xsrf_token(up: RunningWorkstation, browser: httpx.Client) -> None:
    with_header = browser.get(api(up, "quota"), headers={**SCRIPT, "X-XSRFToken": xsrf(browser)})
    assert with_header.json()["user"] == "susan"
    address = api(up, f"events?_xsrf={xsrf(browser)}")
    with browser.stream("GET", address, headers=SCRIPT) as stream:
        assert stream.status_code == 200


@pytest.mark.parametrize("path", ["quota", "jobs", "events"])
def test_page_of_notebook_server_cannot_read(
    up: RunningWorkstation, browser: httpx.Client, path: str
) -> None:
    """Notebook servers share the origin; their scripts do not have this service's XSRF token."""
    answer = browser.get(api(up, path), headers=SCRIPT)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "xsrf")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"},
        {
            "Sec-Fetch-Mode": "cors",
            "Sec-Fetch-Site": "cross-site",
            "Origin": "https://evil.example",
        },
        {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Mode": "cors", "X-XSRFToken": "guess"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/plain"])
def test_forged_requests_change_nothing(
    up: RunningWorkstation, browser: httpx.Client, headers: dict[str, str], kind: str
) -> None:
    body = b'{"entry": {"kind": "command", "argv": ["true"]}, "name": "forged"}'
    answer = browser.post(api(up, "jobs"), content=body, headers={"Content-Type": kind, **headers})
    assert answer.status_code == 403
    names = [job["name"] for job in up.scheduler.get("jobs", params={"all": "true"}).json()]
    assert "forged" not in names


def test_pool_page_writes_with_its_xsrf_token(
    up: RunningWorkstation, browser: httpx.Client
) -> None:
    answer = browser.post(
        api(up, "jobs"),
        json={"entry": {"kind": "command", "argv": ["true"]}},
        headers={**SCRIPT, "X-XSRFToken": xsrf(browser)},
    )
    assert (answer.status_code, answer.json()["user"]) == (201, "susan")


def test_configuration_reload_on_signal_is_atomic(
    up: RunningWorkstation,
) -> None:
    config, log = up.state.parent / "pool.yaml", up.state / "logs" / "hub.log"
    for text, logged, quota in (
        (CONFIGURATION.replace("quota: 2", "qouta: 2"), "configuration unchanged", 2),
        (CONFIGURATION.replace("quota: 2", "quota: 1"), "in force, 1 change", 1),
    ):
        config.write_text(text)
        os.kill(up.scheduler_pid(), signal.SIGHUP)
        wait_for_text(log, logged)
        with up.scheduler_as(up.token_of("susan")) as susan:
            (project,) = susan.get("quota").json()["projects"]
        assert project["quota"] == quota


def wait_for_text(log: Path, text: str) -> None:
    until(lambda: text in log.read_text(), f"{text!r} in {log}")


def test_revoked_token_ends_requests_and_streams(
    up: RunningWorkstation,
) -> None:
    made = up.hub.post("/users/susan/tokens", json={}).json()
    with up.scheduler_as(made["token"]) as client, client.stream("GET", "events") as stream:
        assert (stream.status_code, client.get("status").status_code) == (200, 200)
        assert up.hub.delete(f"/users/susan/tokens/{made['id']}").status_code == 204
        for _ in stream.iter_raw():
            pass  # otherwise the stream never ends
        until(lambda: client.get("status").status_code == 401)


def test_revoked_token_expires_within_five_seconds() -> None:
    """Afterwards the Hub decides again."""
    assert max(CACHE_S, Timing().recheck_of(100)) <= 4
