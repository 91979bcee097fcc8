"""A GET of a form's address redirects to the page with the form, also without a login."""

from __future__ import annotations

import httpx
import pytest
from tornado.routing import URLSpec

from benchpool_scheduler.web import routes
from benchpool_scheduler.web.access_forms import VERBS
from benchpool_scheduler.web.actions import FORMS
from benchpool_scheduler.web.doubts import DECISIONS
from benchpool_scheduler.web.machines_page import ACTS
from benchpool_scheduler.web.notifications_page import NOTIFICATION_ACTS
from benchpool_scheduler.web.pages import FormHandler
from benchpool_scheduler.web.schedules_page import SCHEDULE_ACTS
from benchpool_scheduler.web.services_page import SERVICE_ACTS
from benchpool_support.page_readers import CookieIdentity
from benchpool_support.stage import PREFIX, StagedPool

ID = "abcdefghijklmnopqrstuvwxyz"
PAGES = {
    **{f"access/{it}": "#access" for it in VERBS},
    **{f"benches/{ID}/ask-back": "#benches"},
    **{f"health/{it}": "health" for it in DECISIONS},
    **{f"jobs/{ID}/{it}": f"jobs/{ID}" for it in FORMS},
    **{f"machines/lab-1/{it}": "machines" for it in ACTS},
    **{f"notifications/{it}": "notifications" for it in NOTIFICATION_ACTS},
    **{f"{it}/{act}": it for it in ("people", "quotas") for act in ("preview", "revert")},
    **{f"schedules/{ID}/{it}": "schedules" for it in SCHEDULE_ACTS},
    **{f"services/model/{it}": "services/model" for it in SERVICE_ACTS},
    **{f"sweeps/{ID}/stop": f"sweeps/{ID}"},
}
"""Page of each form, by the address of the form."""


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("reader", [None, "susan", "ada"])
async def test_form_address_redirects_to_its_page(site: str, reader: str | None) -> None:
    cookie = {} if reader is None else {"Cookie": f"reader={reader}"}
    async with httpx.AsyncClient(base_url=site, headers=cookie, trust_env=False) as client:
        answers = {it: await client.get(it) for it in PAGES}
    found = {it: (answer.status_code, answer.headers["Location"]) for it, answer in answers.items()}
    assert found == {it: (303, f"{PREFIX}{page}") for it, page in PAGES.items()}


def test_every_form_address_has_redirect(
    staged: StagedPool,
) -> None:
    rules = [
        rule
        for rule in routes(staged.pool(), CookieIdentity({}), prefix=PREFIX)
        if isinstance(rule, URLSpec)
    ]
    of_forms = [rule for rule in rules if issubclass(rule.handler_class, FormHandler)]
    assert len(of_forms) == 11
    for rule in of_forms:
        assert any(rule.regex.match(f"{PREFIX}{it}") for it in PAGES), rule
    for rule in rules:
        own = vars(rule.handler_class)
        assert rule in of_forms or "post" not in own or "get" in own, rule
