"""The Hub's home page shows quota, jobs and pool; administrators start there."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest

from benchpool_support import direct
from benchpool_support.hub_session import logged_in
from benchpool_support.workstation import RunningWorkstation

pytestmark = pytest.mark.slow

SLEEPS = "import time; time.sleep(600)"


def text_of(html: str, id_: str) -> str:
    """Return the visible text of one element of the page."""
    found = re.search(rf'<(\w+)[^>]* id="{id_}">(.*?)</\1>', html, re.S)
    assert found is not None, html
    return " ".join(re.sub(r"<[^>]*>", " ", found[2]).split())


def test_home_page_shows_quota_jobs_and_pool(up: RunningWorkstation) -> None:
    with logged_in(up, "susan") as session:
        page = session.get("/hub/home").text
        assert text_of(page, "benchpool-home-bench") == (
            "Your build quota is 2 GPUs (user susan), free for you now."
        )
        assert text_of(page, "benchpool-home-jobs") == (
            "You have no running or waiting jobs. You send jobs to project research."
        )
        up.start_server("susan", "paper", gpus=1)
        sent = up.scheduler_as(up.token_of("susan")).post(
            "/jobs",
            json={
                "name": "resnet <b>",
                "gpus": 1,
                "entry": {
                    "kind": "command",
                    "argv": [sys.executable, "-c", SLEEPS],
                },
            },
        )
        assert sent.status_code == 201, sent.text
        up.wait_job(sent.json()["id"], "running")
        page = session.get("/hub/home").text
        assert text_of(page, "benchpool-home-bench") == (
            "1 of 2 GPUs of your build quota is held by server “paper”, 1 is free for you now."
        )
        jobs = text_of(page, "benchpool-home-jobs")
        assert re.match(r"Your jobs: 1 running\. You send jobs to", jobs), jobs
        assert (f"/jobs/{sent.json()['id']}" in page, "resnet &lt;b&gt;" in page) == (True, True)
        pool = text_of(page, "benchpool-home-pool")
        assert re.match(r"8 GPUs: .*; no job waits\. The GPUs are simulated\. Pool", pool), pool
        assert "benchpool-home-admin" not in page
        assert 'id="start"' in page  # the Hub's own part follows
    up.stop_server("susan", "paper")
    up.scheduler.post(f"/jobs/{sent.json()['id']}/cancel", json={})
    with logged_in(up, "joe") as session:
        jobs = text_of(session.get("/hub/home").text, "benchpool-home-jobs")
        assert jobs.startswith("You have no running or waiting jobs.")


def test_home_page_works_without_scheduler(
    up: RunningWorkstation,
) -> None:
    with logged_in(up, "ada") as session:
        assert "You belong to no project yet" in session.get("/hub/home").text
        scheduler = up.scheduler_pid()
        os.kill(scheduler, signal.SIGSTOP)
        try:
            page = session.get("/hub/home").text
        finally:
            os.kill(scheduler, signal.SIGCONT)
        assert "The scheduler does not answer at the moment" in page
        assert 'id="start"' in page


def test_access_request_is_granted_by_project_lead(
    up: RunningWorkstation,
) -> None:
    home, pool = "/hub/home", "/services/benchpool/"
    with logged_in(up, "ada") as ada, logged_in(up, "susan") as susan:
        form = inputs(ada.get(pool).text, "access/ask")
        asked = ada.post(f"{pool}access/ask", data={**form, "project": "research", "reason": "<b>"})
        assert "You requested access to project <bdi>research</bdi>" in asked.text
        assert text_of(susan.get(home).text, "benchpool-home-asking").startswith(
            "ada asks for access to research. Approve"
        )
        page = susan.get(pool).text
        assert "1 access request for you" in page
        assert "<bdi>&lt;b&gt;</bdi>" in page
        forged = susan.post(f"{pool}access/add", data={**inputs(page, "access/add"), "_xsrf": "x"})
        assert forged.status_code == 403
        granted = susan.post(f"{pool}access/add", data=inputs(page, "access/add"))
        assert (granted.status_code, 'id="access"' in granted.text) == (200, False)
        assert "You send jobs to project research." in ada.get(home).text
        assert "benchpool-home-asking" not in susan.get(home).text
    assert "ada" in up.config.read_text()
    removed = up.scheduler.post("/access/remove", json={"project": "research", "user": "ada"})
    assert removed.status_code == 200, removed.text


def inputs(html: str, action: str) -> dict[str, str]:
    """Return the hidden fields of a form with their values."""
    form = re.search(rf'<form[^>]* action="[^"]*{action}"[^>]*>(.*?)</form>', html, re.S)
    assert form is not None, html
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form[1]))


def test_administrators_start_on_home_page_and_users_on_form(up: RunningWorkstation) -> None:
    with logged_in(up, "jemma") as session:
        assert session.get("/").url.path == "/hub/spawn"
    with direct.Client(base_url=up.ready["url"], follow_redirects=True, timeout=60) as session:
        assert session.get(up.ready["login_url"]).url.path == "/hub/home"
        page = session.get("/")
        assert page.url.path == "/hub/home"
        links = re.findall(r'href="([^"]+)"', page.text.partition("benchpool-home-admin")[2])
        assert links[:5] == [
            "/services/benchpool/fleet",
            "/services/benchpool/",
            "/services/benchpool/jobs",
            "/hub/admin",
            "/services/benchpool/audit",
        ]
        assert [session.get(link).status_code for link in links[:5]] == [200] * 5
        assert entry_of(page.text) == "/services/benchpool/fleet"
    with logged_in(up, "jemma") as session:
        assert entry_of(session.get("/hub/home").text) == "/services/benchpool/"


def entry_of(html: str) -> str:
    """Return the target of the entry benchpool in the Hub's menu of services."""
    (found,) = re.findall(r'<a class="dropdown-item" href="([^"]+)">benchpool</a>', html)
    return str(found)
