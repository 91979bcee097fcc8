"""Rate limit of failed logins on a real Hub."""

from __future__ import annotations

import re
import time

import httpx
import pytest

from benchpool_support import direct
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow


def new_browser() -> httpx.Client:
    return direct.Client(follow_redirects=True, timeout=60)


def log_in(browser: httpx.Client, up: RunningWorkstation, user: str, word: str) -> httpx.Response:
    base = up.ready["url"]
    browser.get(f"{base}hub/login")
    token = next(one.value for one in browser.cookies.jar if one.name == "_xsrf")
    form = {"username": user, "password": word}
    return browser.post(f"{base}hub/login?_xsrf={token}", data=form)


def let_in(up: RunningWorkstation) -> httpx.Response:
    """Log joe in with the right password, as soon as the rate limit allows it."""
    with new_browser() as browser:

        def log_in_later() -> httpx.Response:
            answer = log_in(browser, up, "joe", up.shared_password)
            time.sleep(float(answer.headers.get("Retry-After", 0)))  # as the answer requests
            return answer

        return until(log_in_later, holds=lambda answer: answer.status_code != 429)


def test_login_with_wrong_password_is_delayed(
    up: RunningWorkstation,
) -> None:
    statuses = []
    with new_browser() as browser:
        for _ in range(20):
            answer = log_in(browser, up, "joe", "guess")
            statuses.append(answer.status_code)
            if answer.status_code == 429:
                break
    assert statuses[-1] == 429, statuses
    assert len(statuses) > 3
    found = re.search(r"Too many failed logins\. Wait (\d+) seconds?, then try again", answer.text)
    assert found is not None, answer.text
    wait_s = int(answer.headers["Retry-After"])
    assert wait_s == int(found[1])
    late = let_in(up)
    assert late.status_code == 200
    assert late.url.path != "/hub/login"


@pytest.mark.parametrize(
    "names",
    [
        ("X-Real-Ip",),
        ("X-Forwarded-For", "X-Scheme"),
        ("Forwarded", "X-Forwarded-Proto"),
        ("X-Real-Ip", "X-Forwarded-For", "X-Forwarded-Host", "Forwarded"),
    ],
)
def test_forwarded_headers_do_not_change_login_address(
    up: RunningWorkstation, names: tuple[str, ...]
) -> None:
    before, statuses = len(up.wait_audit("login", 0)), list[int]()
    while not statuses or (statuses[-1] != 429 and len(statuses) < 20):
        address = f"10.9.{len(names)}.{len(statuses)}"
        with direct.Client(timeout=60, headers=dict.fromkeys(names, address)) as browser:
            # A different name each time: the delay is by address.
            answer = log_in(browser, up, f"guest{len(statuses)}", "guess")
        statuses.append(answer.status_code)
    assert statuses[-1] == 429, statuses
    events = up.wait_audit("login", before + len(statuses) - 1)[: len(statuses) - 1]
    assert {one["address"] for one in events} == {"127.0.0.1"}
    assert let_in(up).status_code == 200
