"""Job changes on the job page: a remedy is one button, and a time limit uses the CLI syntax."""

from __future__ import annotations

import httpx
import pytest

from benchpool_scheduler.contract import Reason, State
from benchpool_support.stage import StagedPool, job

pytestmark = pytest.mark.asyncio(loop_scope="module")

MINE = job("mine", State.RUNNING)


async def test_remedy_of_wait_reason_is_button_on_job_page(site: str, staged: StagedPool) -> None:
    staged.add(MINE)
    http = httpx.AsyncClient(base_url=site, trust_env=False, headers={"Cookie": "reader=susan"})
    reason = Reason("pool-full", "Waits.", {"would_start_with": 2}, "It would start now with 2.")
    await staged.becomes(MINE.id, state=State.QUEUED, workers=1, gpus=4, reason=reason)
    page = await http.get(f"jobs/{MINE.id}")
    assert "Start with 2 GPUs</button>" in page.text
    fields = {"_xsrf": "token-of-susan", "back": "job", "gpus": "2"}
    answer = await http.post(f"jobs/{MINE.id}/change", data=fields)
    assert (answer.status_code, staged.asked[-1][3]) == (303, "{'gpus': 2}")
    models = Reason("pool-full", "Waits.", {"would_start_on": "H100, A100"}, "")
    await staged.becomes(MINE.id, gpu_models=("H100",), reason=models)
    page = await http.get(f"jobs/{MINE.id}")
    assert "Accept H100, A100</button>" in page.text
    assert 'name="gpu_models" type="text" autocomplete="off" required value="H100"' in page.text
    for given, taken in (("H100, A100", "('H100', 'A100')"), ("any", "()")):
        fields = {"_xsrf": "token-of-susan", "back": "job", "gpu_models": given}
        answer = await http.post(f"jobs/{MINE.id}/change", data=fields)
        assert (answer.status_code, staged.asked[-1][3]) == (303, f"{{'gpu_models': {taken}}}")
    shorter = Reason("reserved-for-others", "Waits.", {"would_start_limited_to": 5400}, "")
    await staged.becomes(MINE.id, reason=shorter)
    page = await http.get(f"jobs/{MINE.id}")
    assert "End it after 1 h 30 min</button>" in page.text
    assert 'name="time_limit_s" value="1h30m"' in page.text
    await staged.becomes(MINE.id, state=State.RUNNING)
    assert "Start with" not in (await http.get(f"jobs/{MINE.id}")).text
    await http.aclose()


async def test_time_limit_is_changed_with_cli_syntax(site: str, staged: StagedPool) -> None:
    staged.add(MINE)
    http = httpx.AsyncClient(base_url=site, trust_env=False, headers={"Cookie": "reader=susan"})
    await staged.becomes(MINE.id, state=State.QUEUED, time_limit_s=5400)
    page = await http.get(f"jobs/{MINE.id}")
    assert 'name="time_limit_s" type="text" autocomplete="off" required value="1h30m"' in page.text
    assert "time limit of an attempt: 90m, 2h, 3d, or seconds" in page.text
    fields = {"_xsrf": "token-of-susan", "back": "job"}
    for given, seconds in (("2h", 7200), ("90 min", 5400), ("600", 600)):
        answer = await http.post(f"jobs/{MINE.id}/change", data=fields | {"time_limit_s": given})
        asked = staged.asked[-1][3]
        assert (answer.status_code, asked) == (303, f"{{'time_limit_s': {seconds}}}")
    for wrong in ("soon", "0", "400d"):
        answer = await http.post(f"jobs/{MINE.id}/change", data=fields | {"time_limit_s": wrong})
        assert answer.status_code == 422
        message = (
            f"Time limit is &#39;{wrong}&#39;. Give a time such as 90m, 1h30m or 2d, or seconds;"
        )
        assert message in answer.text, answer.text
    await http.aclose()
