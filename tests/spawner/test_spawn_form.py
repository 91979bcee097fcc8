"""The form shows the quota, its holders, the free GPUs and the reason of a disabled choice."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

from msgspec import structs

from benchpool_scheduler.contract import (
    BuildQuota,
    Gpu,
    GpuState,
    Health,
    HeldBuild,
    Quota,
    Status,
)
from benchpool_spawner.form import Model, Server, free_at_once, model, render
from benchpool_spawner.home import bench_line
from benchpool_spawner.lease_client import Advice
from benchpool_spawner.options import ServerOptions

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def quota(total: int, *held: tuple[str, int]) -> Quota:
    rows = [HeldBuild(server, [f"GPU-{server}-{i}" for i in range(n)]) for server, n in held]
    free = max(0, total - sum(n for _, n in held))
    return Quota("susan", BuildQuota(total, "user susan", rows, free), [])


def status(*models: str, state: GpuState = GpuState.BUILD_FREE) -> Status:
    gpus = [
        Gpu(str(i), i, name, "localhost", True, state, None, None, None, None, None)
        for i, name in enumerate(models)
    ]
    return Status("", True, gpus, {}, [], 0, 0, Health(True, 1, 1.0, []))


def shown(
    advice: Advice, last: int = 0, servers: dict[str, Server] | None = None
) -> tuple[Model, str]:
    view = model("susan", advice, ServerOptions(last), servers or {}, NOW)
    return view, render(view)


def reasons(view: Model) -> dict[int, str]:
    return {choice.gpus: choice.why_not for choice in view.choices}


def test_gpu_counts_within_quota_can_be_chosen() -> None:
    view, html = shown(Advice(quota(3), status("A100")))
    assert reasons(view) == {0: "", 1: "", 2: "", 3: ""}
    assert "Your build quota: <strong>3 GPUs</strong>" in html
    assert "(user susan)" in html


def test_choice_beyond_free_quota_is_disabled_with_reason() -> None:
    view, html = shown(Advice(quota(2, ("paper", 1)), status("A100")), last=2)
    assert reasons(view) == {0: "", 1: "", 2: "1 of your 2 is already held"}
    assert [choice.gpus for choice in view.choices if choice.chosen] == [1]
    assert re.search(r'aria-describedby="benchpool-why-2"\s+disabled', html)
    assert "held: 1 GPU by server “paper”" in html


def test_gpus_of_parked_bench_are_not_offered_twice() -> None:
    asked = quota(2)
    parked = structs.replace(asked, build=structs.replace(asked.build, free=1, lent=1))
    view, _ = shown(Advice(parked, status("A100")))
    assert reasons(view) == {0: "", 1: "", 2: "1 of your 2 is already held or parked"}


def test_choice_with_waiting_can_be_chosen() -> None:
    view, html = shown(Advice(quota(2), status("A100", state=GpuState.BUILD_HELD)), last=1)
    assert [choice.hint for choice in view.choices] == [
        "",
        "lent or in use now, so the start waits for them",
        "lent or in use now, so the start waits for them",
    ]
    assert [choice.gpus for choice in view.choices if choice.chosen] == [1]
    assert re.search(r'aria-describedby="benchpool-why-1"\s+checked', html)
    assert "wait in the queue" in html


def test_form_counts_lent_gpus_consistently() -> None:
    seen = status("A100", "A100", "V100")
    lent = [structs.replace(gpu, state=GpuState.TRAIN_OVER_QUOTA) for gpu in seen.gpus[1:]]
    seen = structs.replace(seen, gpus=[seen.gpus[0], *lent])
    _, html = shown(Advice(quota(2), seen), last=2)
    text = " ".join(re.sub(r"<[^>]+>", " ", html).split())
    assert "available at once: 1 GPU , and 2 GPUs after lent or used GPUs are returned" in text
    assert "2 GPUs 1 of them is lent or in use now, so the start waits for them" in text
    assert "A100 · 1 GPU at once V100 · no GPU at once" in text
    assert "free" not in text.replace("If they are not free at once", "")
    build = quota(2).build
    line = bench_line(build, free_at_once(build.free, seen))
    assert line.endswith(": 1 at once, 1 is lent or in use."), line
    # This user cannot start with another user's spare GPUs.
    _, html = shown(Advice(quota(1), status("A100", "A100", "A100")))
    assert "available at once: <strong>1 GPU</strong>" in html
    assert "A100 · 3" not in html


def test_busy_choice_defaults_to_last_choice() -> None:
    last = ServerOptions(1, when_busy="refuse")
    view = model("susan", Advice(quota(2), status("A100")), last, {}, NOW)
    assert view.when_busy == "refuse"
    assert 'value="refuse" selected' in render(view)


def test_gpu_count_can_be_left_to_profile() -> None:
    advice = Advice(quota(2), status("A100"))
    view = model("susan", advice, ServerOptions(), {}, NOW, as_profile=True)
    assert not any(choice.chosen for choice in view.choices)
    assert re.search(r'id="benchpool-gpus-profile"\s+value=""\s+checked', render(view))


def test_zero_quota_shows_disabled_choices_with_reason() -> None:
    view, html = shown(Advice(quota(0), status("A100", "V100")), last=1)
    assert reasons(view) == {
        0: "",
        1: "exceeds your build quota of 0",
        2: "exceeds your build quota of 0",
    }
    assert view.choices[0].chosen
    # A request that this user can never make is neither offered nor queued.
    for word in ("at once", "wait in the queue", "Model"):
        assert word not in html, word


def test_fully_held_quota_hides_waiting_choices() -> None:
    _, html = shown(Advice(quota(1, ("paper", 1)), status("A100")))
    assert "at once" not in html
    assert "held: 1 GPU by server “paper”" in html


def test_silent_scheduler_allows_start_without_gpu() -> None:
    view, html = shown(Advice(None, None, "The scheduler does not answer."), last=2)
    assert view.choices[0].chosen
    assert not view.choices[0].why_not
    assert all(choice.why_not for choice in view.choices[1:])
    assert "The scheduler does not answer." in html


def test_form_shows_idle_time_of_gpu_servers() -> None:
    servers = {
        "paper": Server("paper", NOW.replace(tzinfo=None) - timedelta(hours=3)),
        "": Server("", NOW - timedelta(minutes=1)),
    }
    _, html = shown(Advice(quota(2, ("paper", 1), ("", 1)), status("A100")), servers=servers)
    assert "by server “paper” (idle 3 h)" in html
    assert "by your default server (in use)" in html


def test_models_are_shown_with_free_gpus() -> None:
    _, html = shown(Advice(quota(3), status("A100", "A100", "V100")))
    assert "A100 · 2 GPUs at once" in html
    assert "V100 · 1 GPU at once" in html
    assert "<strong>simulated</strong>" in html


def test_hostile_server_name_is_escaped() -> None:
    name = '"><script>alert(1)</script>'
    _, html = shown(Advice(quota(2, (name, 1)), status("<b>A100")))
    assert "<script>alert" not in html
    assert "<b>A100" not in html


def test_fields_have_labels_and_described_reasons() -> None:
    _, html = shown(Advice(quota(1, ("a", 1)), status("A100", "V100")))
    found = _Ids()
    found.feed(html)
    assert set(found.labelled) == set(found.fields)
    assert set(found.described) <= set(found.ids)


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.fields: list[str] = []
        self.labelled: list[str] = []
        self.described: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.ids.append(given.get("id", ""))
        if tag in ("input", "select"):
            self.fields.append(given["id"])
        if tag == "label":
            self.labelled.append(given["for"])
        if "aria-describedby" in given:
            self.described.append(given["aria-describedby"])
