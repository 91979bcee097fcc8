"""Passwords cannot be tried as fast as one likes: a real Hub, asked again and again."""

from __future__ import annotations

import re
import time

import httpx
import pytest

from benchpool_support import direct
from benchpool_support.waiting import until
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow


def log_in(browser: httpx.Client, up: RunningWorkstation, user: str, word: str) -> httpx.Response:
    base = up.ready["url"]
    browser.get(f"{base}hub/login")
    token = next(one.value for one in browser.cookies.jar if one.name == "_xsrf")
    form = {"username": user, "password": word}
    return browser.post(f"{base}hub/login?_xsrf={token}", data=form)


def test_after_some_wrong_passwords_the_next_try_waits_and_then_the_right_one_lets_in(
    up: RunningWorkstation,
) -> None:
    def stranger() -> httpx.Client:
        return direct.Client(follow_redirects=True, timeout=60)

    statuses = []
    with stranger() as browser:
        for _ in range(20):
            answer = log_in(browser, up, "joe", "guess")
            statuses.append(answer.status_code)
            if answer.status_code == 429:
                break
    assert statuses[-1] == 429, statuses
    assert len(statuses) > 3
    said = re.search(r"Too many failed logins: wait (\d+) seconds?, then try again", answer.text)
    assert said is not None, answer.text
    wait_s = int(answer.headers["Retry-After"])
    assert wait_s == int(said[1])
    with stranger() as browser:

        def log_in_later() -> httpx.Response:
            answer = log_in(browser, up, "joe", up.shared_password)
            time.sleep(float(answer.headers.get("Retry-After", 0)))  # as it was told
            return answer

        late = until(log_in_later, holds=lambda answer: answer.status_code != 429)
        assert late.status_code == 200
        assert late.url.path != "/hub/login"
