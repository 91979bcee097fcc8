"""Pages over real HTTP without a browser: permissions, headers, forms and refusals."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

import benchpool_scheduler.web
from benchpool_scheduler.contract import Attempt, EstimateHorizon, State
from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.service import Caller
from benchpool_support.page_readers import TrustingIdentity
from benchpool_support.stage import (
    StagedPool,
    application,
    gpu,
    job,
    served,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE = job("mine", State.RUNNING)
THEIRS = job("theirs", State.RUNNING, user="joe", project="joe")


@pytest_asyncio.fixture(loop_scope="module")
async def http(site: str, staged: StagedPool) -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client that does not follow redirects."""
    staged.add(MINE, THEIRS)
    staged.gpus = [gpu(0)]
    async with httpx.AsyncClient(base_url=site, trust_env=False) as client:
        yield client


def as_(reader: str) -> dict[str, str]:
    return {"Cookie": f"reader={reader}"}


def form(reader: str, **fields: str) -> dict[str, str]:
    return {"_xsrf": f"token-of-{reader}", **fields}


def led_to(answer: httpx.Response) -> httpx.URL:
    return answer.url.join(answer.headers["Location"])


async def test_estimate_accuracy_is_visible_to_every_user(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    answer = await http.get("estimates", headers=as_("joe"))
    assert "No job with an estimate has started yet" in answer.text
    staged.horizons = [EstimateHorizon(600.0, 40, 34, 4, 2), EstimateHorizon(None, 0, 0, 0, 0)]
    answer = await http.get("estimates", headers=as_("joe"))
    text = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", answer.text))
    assert "At least 80 % of starts" in text
    assert "up to 10 min 40 85 % 10 % 5 %" in text
    assert "longer 0 – – –" in text
    assert 'href="/services/benchpool/estimates"' in (await http.get("", headers=as_("joe"))).text


async def test_anonymous_reader_is_redirected_to_login(http: httpx.AsyncClient) -> None:
    for path in ("", f"jobs/{MINE.id}", "nowhere"):
        answer = await http.get(path)
        assert (answer.status_code, answer.headers["Location"]) == (302, "/hub/login")


async def test_anonymous_action_reports_expired_session(http: httpx.AsyncClient) -> None:
    answer = await http.post(f"jobs/{MINE.id}/pause", data={})
    assert answer.status_code == 401
    assert "Open the page again to log in" in answer.text


async def test_user_sees_own_jobs_and_administrator_all(
    http: httpx.AsyncClient,
) -> None:
    own_text = (await http.get("", headers=as_("susan"))).text
    all_text = (await http.get("", headers=as_("ada"))).text
    assert MINE.id in own_text
    assert THEIRS.id not in own_text
    assert "2 jobs running, you see 1" in own_text
    assert {MINE.id, THEIRS.id} <= set(re.findall(r"[a-z0-9]{26}", all_text))


@pytest.mark.parametrize("path", ["", f"jobs/{MINE.id}", "nowhere", "jobs/nonesuch"])
async def test_pages_forbid_inline_code_and_foreign_origins(
    http: httpx.AsyncClient, path: str
) -> None:
    answer = await http.get(path, headers=as_("susan"))
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Cache-Control"] == "no-store"
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", answer.text)
    assert not re.search(r"""(?:src|href|action)=["'](?:https?:)?//""", answer.text)


async def test_invisible_job_is_not_found(http: httpx.AsyncClient) -> None:
    hidden = await http.get(f"jobs/{THEIRS.id}", headers=as_("susan"))
    missing = await http.get("jobs/nonesuch", headers=as_("susan"))
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace(THEIRS.id, "") == missing.text.replace("nonesuch", "")
    assert "benchpool jobs lists yours" in hidden.text


async def test_job_page_opens_by_short_id(http: httpx.AsyncClient) -> None:
    assert (await http.get(f"jobs/{MINE.id[:8]}", headers=as_("susan"))).status_code == 200


async def test_dashboard_address_without_slash_works(
    http: httpx.AsyncClient,
) -> None:
    answer = await http.get(str(http.base_url).rstrip("/"), headers=as_("susan"))
    assert answer.status_code == 200


async def test_unavailable_service_is_reported(http: httpx.AsyncClient, staged: StagedPool) -> None:
    staged.away = Unavailable("The pool is being opened: try again in a few seconds.")
    answer = await http.get("", headers=as_("susan"))
    assert answer.status_code == 503
    assert "The pool is being opened: try again in a few seconds." in answer.text


@pytest.mark.expected_errors("Uncaught exception GET")
async def test_internal_error_hides_details(
    http: httpx.AsyncClient, staged: StagedPool, caplog: pytest.LogCaptureFixture
) -> None:
    staged.away = RuntimeError("secret path /root")  # type: ignore[assignment]
    answer = await http.get("", headers=as_("susan"))
    assert answer.status_code == 500
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text
    assert "Jobs and benches are not affected" in answer.text


# --------------------------------------------------------------------------- actions


async def test_pause_works_without_scripts_and_offers_resume(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    answer = await http.post(
        f"jobs/{MINE.id}/pause", data=form("susan", back="dashboard"), headers=as_("susan")
    )
    assert answer.status_code == 303
    page = await http.get(led_to(answer), headers=as_("susan"))
    assert "mine is paused until you resume it." in page.text
    assert f'action="/services/benchpool/jobs/{MINE.id}/resume"' in page.text
    assert staged.asked == [("pause", "susan", MINE.id, None)]


async def test_action_returns_to_its_page(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        f"jobs/{MINE.id}/cancel", data=form("susan", back="job"), headers=as_("susan")
    )
    assert answer.headers["Location"] == (
        f"/services/benchpool/jobs/{MINE.id}?did=cancel&of={MINE.id}"
    )
    page = await http.get(led_to(answer), headers=as_("susan"))
    assert "mine is cancelled." in page.text


async def test_priority_and_workers_are_changed_on_job_page(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    await staged.becomes(MINE.id, state=State.QUEUED)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert f'action="/services/benchpool/jobs/{MINE.id}/change"' in page.text
    fields = form("susan", back="job", priority="80", workers=" 2 ")
    answer = await http.post(f"jobs/{MINE.id}/change", data=fields, headers=as_("susan"))
    assert (answer.status_code, staged.asked[-1][3]) == (303, "{'priority': 80, 'workers': 2}")
    page = await http.get(led_to(answer), headers=as_("susan"))
    assert "mine has priority 80, 2 workers, " in page.text
    for wrong, words in (("5000", "1000"), ("high", "a whole number")):
        fields = form("susan", back="job", priority=wrong)
        answer = await http.post(f"jobs/{MINE.id}/change", data=fields, headers=as_("susan"))
        assert (answer.status_code, words in answer.text) == (422, True), answer.text


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
async def test_job_is_renamed_on_page_in_any_state(
    http: httpx.AsyncClient, staged: StagedPool, state: State
) -> None:
    await staged.becomes(MINE.id, state=state)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert f'action="/services/benchpool/jobs/{MINE.id}/rename"' in page.text
    assert 'name="name" type="text" maxlength="100"' in page.text
    fields = form("susan", back="job", name="  <b>baseline</b> ")
    answer = await http.post(f"jobs/{MINE.id}/rename", data=fields, headers=as_("susan"))
    assert answer.status_code == 303
    page = await http.get(led_to(answer), headers=as_("susan"))
    assert "The new name is &lt;b&gt;baseline&lt;/b&gt;." in page.text
    answer = await http.post(
        f"jobs/{MINE.id}/rename", data=form("susan", name=" "), headers=as_("susan")
    )
    assert answer.status_code == 422


async def test_running_gang_can_change_only_priority(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    await staged.becomes(MINE.id, state=State.RUNNING)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert "It runs with all of its workers or none; pause it first." in page.text
    await staged.becomes(MINE.id, state=State.PAUSING)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert "It is leaving its GPUs; change this when it waits." in page.text
    await staged.becomes(MINE.id, state=State.RUNNING)
    staged.least[MINE.id] = 1
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert "It runs with all of its workers" not in page.text
    assert "It can change while the job waits; pause it first." in page.text
    await staged.becomes(MINE.id, state=State.SUCCEEDED)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert "/change" not in page.text


@pytest.mark.parametrize("back", ["https://example.org/", "//example.org", "job/../../x"])
async def test_action_never_redirects_elsewhere(http: httpx.AsyncClient, back: str) -> None:
    answer = await http.post(
        f"jobs/{MINE.id}/pause", data=form("susan", back=back), headers=as_("susan")
    )
    assert answer.headers["Location"].startswith("/services/benchpool/?did=pause&")


async def test_forged_requests_change_nothing(http: httpx.AsyncClient, staged: StagedPool) -> None:
    forged: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}),
        ({"_xsrf": ""}, {}),
        ({"_xsrf": "token-of-joe"}, {}),
        (form("susan"), {"Sec-Fetch-Site": "cross-site"}),
        (form("susan"), {"Sec-Fetch-Site": "same-site"}),
    ]
    for verb in ("pause", "resume", "cancel", "change"):
        for fields, headers in forged:
            answer = await http.post(
                f"jobs/{MINE.id}/{verb}", data=fields, headers=as_("susan") | headers
            )
            assert answer.status_code == 403
        by_link = await http.get(f"jobs/{MINE.id}/{verb}", headers=as_("susan"))
        assert by_link.headers["Location"] == f"/services/benchpool/jobs/{MINE.id}"
    assert staged.asked == []


async def test_form_token_is_required_despite_trusted_cookie(
    staged: StagedPool,
) -> None:
    staged.add(MINE)
    people = {"susan": Caller("susan")}
    with served(lambda: application(staged.pool(), people, TrustingIdentity)) as url:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            for token in ({}, {"_xsrf": "token-of-joe"}, {"_xsrf": "é"}):
                answer = await client.post(
                    f"jobs/{MINE.id}/cancel", data=token, headers=as_("susan")
                )
                assert answer.status_code == 403
                assert "Open the page again" in answer.text
    assert staged.asked == []


async def test_administrator_intervention_requires_reason(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    path = f"jobs/{THEIRS.id}/cancel"
    without = await http.post(path, data=form("ada", reason="  "), headers=as_("ada"))
    assert without.status_code == 422
    assert "Give a short reason for joe to read" in without.text
    long = await http.post(path, data=form("ada", reason="x" * 201), headers=as_("ada"))
    assert "The reason has 201 characters, at most 200 are allowed" in long.text
    assert staged.asked == []
    given = await http.post(path, data=form("ada", reason=" power \n cut "), headers=as_("ada"))
    assert given.status_code == 303
    assert staged.asked == [("cancel", "ada", THEIRS.id, "power cut")]


async def test_invisible_job_cannot_be_cancelled(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    answer = await http.post(
        f"jobs/{THEIRS.id}/cancel", data=form("susan", reason="x"), headers=as_("susan")
    )
    assert answer.status_code == 404
    assert staged.asked == []


async def test_refusal_is_shown_on_page(http: httpx.AsyncClient, staged: StagedPool) -> None:
    await staged.becomes(MINE.id, state=State.SUCCEEDED)
    answer = await http.post(f"jobs/{MINE.id}/pause", data=form("susan"), headers=as_("susan"))
    assert answer.status_code == 409
    assert "mine is succeeded already: there is nothing to pause." in answer.text


@pytest.mark.parametrize("query", ["did=<b>&of=x", "did=pause&of=nonesuch", "did=pause"])
async def test_query_text_is_not_shown_on_page(http: httpx.AsyncClient, query: str) -> None:
    answer = await http.get(f"?{query}", headers=as_("susan"))
    assert answer.status_code == 200
    assert "data-message" not in answer.text


async def test_log_of_invalid_attempt_is_not_found(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"jobs/{MINE.id}?attempt=-1", headers=as_("susan"))
    assert answer.status_code == 404


async def test_each_worker_of_attempt_has_log_link(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    nodes = (["lab1"], ["lab1", "lab1", "lab1"])  # in attempt 2, one worker was replaced
    staged.starts[MINE.id] = [
        Attempt(number, MINE.submitted, None, None, None, [], list(of))
        for number, of in enumerate(nodes, start=1)
    ]
    await staged.becomes(MINE.id, state=State.RUNNING, workers=2, attempt=2)
    page = await http.get(f"jobs/{MINE.id}", headers=as_("susan"))
    assert "attempt=2&amp;worker=2" in page.text
    assert "attempt=2&amp;worker=3" not in page.text
    page = await http.get(f"jobs/{MINE.id}?attempt=1", headers=as_("susan"))
    assert "attempt=1&amp;worker=1" not in page.text


async def test_dashboard_shows_fifty_waiting_jobs_and_counts_rest(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    staged.add(*(job(f"{number:04}") for number in range(1000)))
    answer = await http.get("", headers=as_("susan"))
    assert answer.text.count('data-state="queued"') == 50
    assert "950 more jobs are not shown here" in answer.text


async def test_ten_thousand_jobs_are_paged_and_searchable(
    http: httpx.AsyncClient, staged: StagedPool
) -> None:
    staged.add(*(job(f"{number:05}") for number in range(10_000)))
    first = await http.get("jobs", headers=as_("susan"))
    assert first.text.count('data-state="queued"') == 200
    assert len(first.content) < 300_000
    assert 'href="/services/benchpool/jobs?offset=200">Older' in first.text
    assert ">Newer<" not in first.text
    last = await http.get("jobs?offset=10000", headers=as_("susan"))
    assert ">Older<" not in last.text
    assert 'href="/services/benchpool/jobs?offset=9800">Newer' in last.text
    found = await http.get("jobs?search=0077&state=queued", headers=as_("susan"))
    assert found.text.count('data-state="queued"') == 11  # 00077, and 00770 to 00779
    assert 'value="0077"' in found.text
    whole = await http.get("", headers=as_("susan"))
    assert len(whole.content) < 200_000


async def test_empty_search_is_reported_and_invalid_search_rejected(
    http: httpx.AsyncClient,
) -> None:
    none = await http.get("jobs?search=<b>nonesuch", headers=as_("susan"))
    assert "No job that you may see matches." in none.text
    assert "<b>" not in none.text
    refused = await http.get("jobs?state=resting", headers=as_("susan"))
    assert refused.status_code == 422
    assert (await http.get("jobs?offset=-1", headers=as_("susan"))).status_code == 422


# --------------------------------------------------------------------------- files


async def test_static_files_are_revalidated_and_not_sniffed(
    http: httpx.AsyncClient,
) -> None:
    first = await http.get("static/page.js")
    assert first.headers["Content-Type"].split(";")[0].endswith("/javascript")
    assert first.headers["X-Content-Type-Options"] == "nosniff"
    assert first.headers["Cache-Control"] == "no-cache"
    again = await http.get("static/page.js", headers={"If-None-Match": first.headers["Etag"]})
    assert again.status_code == 304
    assert (await http.get("static/../pages.py")).status_code in (302, 403, 404)
    assert (await http.get("static/%00")).status_code == 404
    assert (await http.get("static/page.js%00.css")).status_code == 404


async def test_scripts_insert_no_markup_and_use_no_foreign_host() -> None:
    folder = Path(benchpool_scheduler.web.__file__).parent
    for file in [*folder.glob("static/*.js"), *folder.glob("static/*.css")]:
        text = file.read_text()
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc",
            text,
        ), file.name
        assert not re.search(r'https?://|@import|url\((?!"#)', text), file.name
    for file in folder.glob("templates/*.html"):
        text = file.read_text()
        assert "|safe" not in text.replace(" ", ""), file.name
        assert "autoescape false" not in text, file.name
