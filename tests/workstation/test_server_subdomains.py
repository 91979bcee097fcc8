"""Users' servers on subdomains, and requests for foreign host names (R17)."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchpool_support.certificates import issue
from benchpool_support.names_of_a_site import (
    HOST,
    administrators_browser,
    follow_to_pool,
    jobs_seen_from,
    open_lab,
    start_with_subdomains,
)
from benchpool_support.workstation import COMMAND, RunningWorkstation

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorkstation]:
    with start_with_subdomains(tmp_path_factory.mktemp("subdomains") / "state", gpus=2) as running:
        yield running


@pytest.fixture(scope="module")
def browser(up: RunningWorkstation) -> Iterator[httpx.Client]:
    with administrators_browser(up) as browser:
        yield browser


def test_server_opens_on_subdomain_and_links_to_pool(
    up: RunningWorkstation, browser: httpx.Client
) -> None:
    admin = up.hub.get("/user").json()["name"]
    port = httpx.URL(up.ready["url"]).port
    up.start_server(admin)
    job = {"entry": {"kind": "command", "argv": ["true"]}, "project": admin}
    with up.scheduler_as(up.ready["admin_token"]) as pool:
        assert pool.post("jobs", json=job).status_code == 201
    lab = open_lab(up, browser, admin)
    assert '"appName"' in lab.text
    address = jobs_seen_from(browser, lab, admin)[0]["url"]
    assert address.startswith(f"https://{HOST}:{port}/services/benchpool/jobs/")
    assert browser.get(address).status_code == 200


def test_hub_pages_link_to_pool_with_port(up: RunningWorkstation, browser: httpx.Client) -> None:
    follow_to_pool(up, browser)
    assert "__Host-jupyterhub-hub-login" in {cookie.name for cookie in browser.cookies.jar}


@pytest.mark.parametrize("path", ["hub/login", "services/benchpool/", "user/root/lab", "hub/api/"])
@pytest.mark.parametrize("host", ["evil.example", "pool.example.test.evil.example", ""])
def test_request_for_foreign_host_is_rejected(
    up: RunningWorkstation, browser: httpx.Client, path: str, host: str
) -> None:
    for upgrade in ({}, {"Connection": "Upgrade", "Upgrade": "websocket"}):
        answer = browser.get(f"{up.ready['url']}{path}", headers={"Host": host, **upgrade})
        assert answer.status_code == 421
        assert "start it with --public-host and the name that you came by" in answer.text


@pytest.mark.parametrize(
    "host", [HOST, f"susan.{HOST}", "127.0.0.1", "[::1]", "192.0.2.7", "localhost", "LOCALHOST."]
)
def test_own_names_and_addresses_are_accepted(
    up: RunningWorkstation, browser: httpx.Client, host: str
) -> None:
    port = httpx.URL(up.ready["url"]).port
    headers = {"Host": f"{host}:{port}"}
    assert browser.get(f"{up.ready['url']}hub/api/", headers=headers).status_code != 421
    own = {"Host": socket.gethostname()}
    assert browser.get(f"{up.ready['url']}hub/api/", headers=own).status_code == 200


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "--subdomains needs a host name whose subdomains"),
        (["192.0.2.7"], "--subdomains needs a host name whose subdomains"),
        ([HOST], f"is not valid for *.{HOST}, where --subdomains puts the users' servers"),
    ],
)
def test_unusable_subdomain_options_are_rejected(
    tmp_path: Path, names: list[str], message: str
) -> None:
    files = issue(tmp_path, HOST)
    words = ["--tls-cert", str(files.cert), "--tls-key", str(files.key), "--subdomains"]
    host = [word for name in names for word in ("--public-host", name)]
    done = subprocess.run(
        [*COMMAND, "up", "--state", str(tmp_path / "state"), "--port", "0", *words, *host],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert message in done.stderr
