"""The owner's view of a bench with a lent GPU: the same number everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from benchpool_support.people import Person
from benchpool_support.workstation import RunningWorkstation

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

HOLDS_ALL = """\
import time
from benchpool import checkpoint
print("holds all", flush=True)
while not checkpoint.should_stop():
    time.sleep(0.05)
raise SystemExit(3)
"""
GPUS = 9


@pytest.fixture
def lent(workstation: RunningWorkstation) -> Iterator[RunningWorkstation]:
    """Yield a workstation whose benches lend their GPUs; one job holds all GPUs."""
    workstation.clear()
    assert lend(workstation, True) == 200
    body = {
        "name": "holds-all",
        "project": "jemma",
        "gpus": GPUS,
        "entry": {"kind": "command", "argv": ["python3", "-c", HOLDS_ALL]},
    }
    workstation.add_user("jemma")
    jemma = workstation.scheduler_as(workstation.token_of("jemma"))
    sent = jemma.post("/jobs", json=body)
    assert sent.status_code == 201, sent.text
    workstation.wait_job(sent.json()["id"], "running", timeout_s=120)
    yield workstation
    workstation.stop_server("susan")
    workstation.clear()
    assert lend(workstation, False) == 200


def lend(workstation: RunningWorkstation, wanted: bool) -> int:
    """Turn lending of unused bench GPUs on or off; return the status of the answer."""
    settings = [{"key": "build.lend_idle", "value": wanted}]
    edit = {"settings": settings, "reason": "a test"}
    return workstation.scheduler.post("/config/set", json=edit).status_code


def test_lent_gpu_is_shown_consistently_and_reclaimed(
    lent: RunningWorkstation, person: Callable[..., Person]
) -> None:
    susan = person("susan")
    susan.log_in()
    susan.page.goto(f"{susan.url}/hub/home")
    expect(susan.page.locator("#benchpool-home-bench")).to_contain_text(
        "Your build quota is 1 GPU (user susan): none at once, 1 is lent or in use."
    )
    susan.look_around("lent-home")
    susan.open_start_form()
    form = susan.page.locator("form", has=susan.page.locator("input[name=gpus]"))
    expect(form).to_contain_text("available at once: no GPU, and 1 GPU after lent or used")
    asked = form.locator(".form-check", has=susan.page.locator("input[value='1']"))
    expect(asked).to_have_text("1 GPU lent or in use now, so the start waits for them")
    susan.look_around("lent-form")

    # The start works as announced: the job is preempted, and the server starts with its GPU.
    susan.start_server(1)
    (held,) = lent.leases("susan")
    assert len(held["gpus"]) == 1
    susan.page.goto(f"{susan.url}/hub/home")
    expect(susan.page.locator("#benchpool-home-bench")).to_contain_text(
        "1 of 1 GPU of your build quota is held by your default server, none is left."
    )
