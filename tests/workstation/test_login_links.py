"""A login link switches the logged-in user only after a confirmation."""

from __future__ import annotations

import re

import httpx
import pytest

from benchpool_scheduler.workstation import login_keys
from benchpool_support import direct
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow

OPENS = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "none"}


def who(browser: httpx.Client, up: RunningWorkstation) -> str:
    page = browser.get(f"{up.ready['url']}hub/home", headers=OPENS)
    assert page.url.path == "/hub/home"
    found = re.search(r'"?user"?: "(\w+)"', page.text)
    assert found is not None, page.text
    return found[1]


def test_login_link_asks_before_switching_user(up: RunningWorkstation) -> None:
    with direct.Client(follow_redirects=True, timeout=60) as browser:
        browser.get(login_keys.for_running(up.state, "susan"), headers=OPENS)
        assert who(browser, up) == "susan"

        again = browser.get(login_keys.for_running(up.state, "susan"), headers=OPENS)
        assert "Log in as" not in again.text  # nothing changes

        other = login_keys.for_running(up.state, "joe")
        asked = browser.get(other, headers=OPENS)
        assert "You are logged in as susan. This link logs you in as joe instead" in asked.text
        assert who(browser, up) == "susan"

        form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', asked.text))
        forged = browser.post(f"{up.ready['url']}hub/login-link", data={"key": form["key"]})
        assert forged.status_code == 403
        assert who(browser, up) == "susan"

        browser.post(
            f"{up.ready['url']}hub/login-link", data=form, headers={"Sec-Fetch-Site": "same-origin"}
        )
        assert who(browser, up) == "joe"
        assert browser.get(other, headers=OPENS).status_code == 200  # used up and logged in
        assert who(browser, up) == "joe"


def test_logout_is_audited(up: RunningWorkstation) -> None:
    with direct.Client(follow_redirects=True, timeout=60) as browser:
        browser.get(login_keys.for_running(up.state, "jemma"), headers=OPENS)
        assert who(browser, up) == "jemma"
        browser.get(f"{up.ready['url']}hub/logout", headers=OPENS)
        gone = browser.get(f"{up.ready['url']}hub/home", headers=OPENS)
        assert gone.url.path == "/hub/login"
    (out,) = up.wait_audit("logout", 1)
    assert (out["actor"], out["target"], out["outcome"]) == ("jemma", "jemma", "done")
    assert out["address"]
