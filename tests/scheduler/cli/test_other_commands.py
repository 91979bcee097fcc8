"""Commands that show and act: tables that fit the terminal, JSON, exit statuses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchpool_scheduler import cli
from benchpool_scheduler.contract import LeaseRequest, LineRequest
from benchpool_support.serving import CONFIGURATION, Served

pytestmark = pytest.mark.slow

Benchpool = Callable[..., Any]

LONG = "a-name-that-is-much-longer-than-any-column-of-a-table-" + "x" * 40


@pytest.fixture
def waiting(benchpool: Benchpool, service: Served) -> str:
    """A job that waits behind another that holds all GPUs, after the pass that decided so."""
    return behind(benchpool, service, "4")


def behind(benchpool: Benchpool, service: Served, held: str) -> str:
    """Send a job that waits behind a job with ``held`` GPUs; return its ID after that decision."""
    benchpool("submit", "--gpus", held, "--name", LONG, "--", "sleep", "600")
    result = benchpool("submit", "--gpus", "4", "--json", "--name", "waits", "--", "true")
    id_: str = result.json["id"]
    with service.client("susan") as susan:
        for _ in susan.events():
            reason = susan.why(id_).reason
            if reason is not None and reason.code != "next-pass":
                return id_
    raise AssertionError("events never end")


def test_tables_fit_80_columns_without_colour_when_piped(
    benchpool: Benchpool, waiting: str
) -> None:
    for verb in (["jobs"], ["status"], ["quota"], ["show", waiting]):
        result = benchpool(*verb)
        assert result.status == 0
        assert "\x1b" not in result.out
        table = [line for line in result.out.splitlines() if "Reason" not in line]
        if verb != ["show", waiting]:
            assert max(len(line) for line in table) <= 80, result.out


def test_jobs_are_filtered_by_words_and_state(benchpool: Benchpool, waiting: str) -> None:
    def found(*words: str) -> list[str]:
        return [job["id"] for job in benchpool("jobs", "--json", *words).json]

    assert found("--search", "WAITS susan") == [waiting]
    assert found("--search", waiting[:8], "--state", "queued") == [waiting]
    assert found("--search", "waits", "--state", "running") == []
    output = benchpool("jobs", "--search", "nonesuch").out
    assert output.startswith("No matching jobs. ")


def test_bench_queue_is_listed(benchpool: Benchpool, service: Served) -> None:
    assert benchpool("bench", "queue").out == "No server that you may see waits for a bench.\n"
    with service.client("hub") as hub:
        held = hub.reserve(LeaseRequest("zoe", "", "1", 5, groups={"large": 5}))
        for user in ("joe", "susan"):
            asked = LeaseRequest(user, "paper", "1", 1, groups={"small": 1})
            assert hub.wait_in_line(LineRequest(asked)).place is not None
    output = benchpool("bench", "queue").out
    assert [row.split()[:4] for row in output.splitlines()] == [
        ["POSITION", "USER", "SERVER", "GPUS"],
        ["2", "susan", "paper", "1"],
    ]
    assert "1 GPU is not free" in output
    assert "2 servers wait for a bench: see `benchpool bench queue`" in benchpool("status").out
    (own,) = benchpool("bench", "queue", "--json").json
    assert (own["user"], own["place"]["position"]) == ("susan", 2)
    with service.client("hub") as hub:
        hub.release(held.id)


def test_reclaim_asks_bench_owner(benchpool: Benchpool, service: Served) -> None:
    with service.client("hub") as hub:
        held = hub.reserve(LeaseRequest("zoe", "paper", "1", 1, groups={"large": 5}))
    result = benchpool("bench", "reclaim", held.id, "--reason", "a course begins", by="root")
    assert result.out == (
        "Asked zoe to release 1 GPU of server “paper”. zoe sees the request on the pool's page and "
        "in JupyterLab. Nothing was stopped.\n"
    )
    (now,) = (one for one in service.client("root").leases() if one.id == held.id)
    assert now.reclaim_request is not None
    assert (now.reclaim_request.by, now.reclaim_request.reason) == ("root", "a course begins")
    assert benchpool("bench", "reclaim", held.id, "--reason", "no", by="susan").status == 3
    with service.client("hub") as hub:
        hub.release(held.id)


def test_owner_keeps_and_releases_bench(benchpool: Benchpool, service: Served) -> None:
    with service.client("hub") as hub:
        held = hub.reserve(LeaseRequest("susan", "paper", "1", 1, groups={"large": 5}))
    assert held.id in benchpool("benches", by="susan").out
    kept = benchpool("keep-bench", held.id, by="susan")
    assert kept.out.startswith("Kept until "), kept
    assert "Idle benches are not reclaimed here; only their owners release them." in kept.out
    gone = benchpool("give-back", held.id, by="susan")
    assert gone.out.startswith("The Hub stops your server “paper”"), gone
    assert "Lost: the variables of its kernels" in gone.out
    (now,) = benchpool("benches", "--json", by="susan").json
    assert (now["asked"], now["act"]) == (True, "stop")
    assert benchpool("give-back", held.id, by="root").status == 3
    wrong = benchpool("keep-bench", "paper", by="susan")
    assert "There is no bench 'paper': `benchpool benches` lists IDs." in wrong.err
    with service.client("hub") as hub:
        hub.release(held.id)


def test_long_names_are_shortened_in_middle(benchpool: Benchpool, waiting: str) -> None:
    assert "a-name-th…xxxxxxxx" in benchpool("jobs").out


def test_names_cannot_control_terminal(benchpool: Benchpool, service: Served) -> None:
    result = benchpool("submit", "--json", "--name", "[bold]a", "--", "sh", "-c", "sleep 600")
    assert "[bold]a" in benchpool("jobs").out
    assert benchpool("submit", "--name", "a\x1b[2J", "--", "true").status == 2
    benchpool("cancel", result.json["id"])


def test_why_shows_wait_reason(benchpool: Benchpool, waiting: str) -> None:
    result = benchpool("why", waiting[:6])
    assert "Waits for 4 GPUs" in result.out
    as_json = benchpool("why", "--json", waiting).json
    assert " ".join(as_json) == "job reason estimated_start would_start_with deadline"
    assert list(as_json["reason"]) == ["code", "text", "numbers", "remedy"]


def test_only_waiting_job_has_estimated_start(benchpool: Benchpool, waiting: str) -> None:
    assert "Starts" in benchpool("show", waiting).out
    assert "Starts" in benchpool("why", waiting).out
    for verb in ("pause", "cancel"):
        benchpool(verb, waiting)
        assert "Starts" not in benchpool("show", waiting).out
        assert "Starts" not in benchpool("why", waiting).out


def test_code_shows_sent_source_with_line_numbers(benchpool: Benchpool, folder: Path) -> None:
    (folder / "two.py").write_text("def f():\n    return '\x1b[2J'\n\nf()\n")
    id_ = benchpool("submit", "--json", "two.py").json["id"]
    (folder / "two.py").write_text("changed")
    assert benchpool("code", id_[:8]).out == "def f():\n    return '\\x1b[2J'\n\nf()\n"
    id_ = benchpool("submit", "--json", "--", "sh", "-c", "exit 0").json["id"]
    assert benchpool("code", id_).out == "sh -c 'exit 0'\n"


def test_narrow_list_shows_full_failure_below(benchpool: Benchpool, folder: Path) -> None:
    (folder / "boom.py").write_text("raise ValueError('a rate that nobody would take for one')")
    id_ = benchpool("submit", "--json", "--wait", "boom.py").json["id"]
    benchpool("submit", "--wait", "--", "true")
    output = benchpool("jobs").out
    text = "boom failed with ValueError: a rate that nobody would take for one (boom.py, line 1)."
    assert output.splitlines()[-1] == f"{id_[:8]}  {text}"
    assert benchpool("show", id_).out.count(text) == 1


def test_show_has_job_and_attempts(benchpool: Benchpool) -> None:
    id_ = benchpool("submit", "--json", "--wait", "--", "true").json["id"]
    detail = benchpool("show", "--json", id_).json
    assert detail["job"]["state"] == "succeeded"
    (attempt,) = detail["attempts"]
    assert list(attempt) == [
        "attempt", "started", "ended", "exit_code", "ended_by", "gpus", "nodes",
    ]  # fmt: skip
    assert "itself" in benchpool("show", id_).out


def test_missing_log_of_queued_job_is_reported_on_stderr(
    benchpool: Benchpool, waiting: str
) -> None:
    result = benchpool("logs", waiting)
    assert (result.out, result.err.strip()) == ("", "No log yet: the job has not started.")


def test_several_jobs_are_paused_resumed_and_cancelled(benchpool: Benchpool, waiting: str) -> None:
    both = [job["id"] for job in benchpool("jobs", "--json").json]
    result = benchpool("cancel", "--json", *both)
    assert [job["id"] for job in result.json] == both
    assert benchpool("pause", *both).status == 3


def test_name_instead_of_id_is_not_found(benchpool: Benchpool) -> None:
    for verb in ("cancel", "show", "why"):
        result = benchpool(verb, "my-fit")
        assert "There is no job with the id 'my-fit' that you may see" in result.err


def test_priority_and_workers_of_jobs_can_be_changed(benchpool: Benchpool, waiting: str) -> None:
    result = benchpool("change", "--json", waiting, "--priority", "80", "--workers", "1")
    assert [(job["priority"], job["workers"]) for job in result.json] == [(80, 1)]
    refused = benchpool("change", waiting, "--workers", "2")
    assert refused.status == 2
    assert "need 8 GPUs and can never run" in refused.err
    errors = benchpool("change", waiting).err
    assert "priority, workers, GPUs, time limit, project or GPU models" in errors


def test_advised_command_works_as_printed(benchpool: Benchpool, service: Served) -> None:
    waiting = behind(benchpool, service, "3")
    command = f"benchpool change {waiting[:8]} --gpus 1"
    assert command in benchpool("why", waiting).out
    assert command in benchpool("show", waiting).out
    refused = benchpool("change", waiting, "--project", "nowhere")
    result = benchpool(*command.split()[1:], "--time-limit", "10m", "--json")
    assert [(job["gpus"], job["time_limit_s"]) for job in result.json] == [(1, 600)]
    assert "There is no project 'nowhere'" in refused.err


def test_job_can_be_renamed(benchpool: Benchpool, waiting: str) -> None:
    assert benchpool("rename", "--json", waiting, "ablation 3").json["name"] == "ablation 3"
    assert "ablation 3" in benchpool("rename", waiting, "ablation 3").out
    assert benchpool("show", "--json", waiting).json["job"]["name"] == "ablation 3"
    refused = benchpool("rename", waiting, "")
    assert refused.status == 2
    assert "name" in refused.err
    assert benchpool("rename", waiting).status == 2


def test_action_continues_after_one_refusal(benchpool: Benchpool, waiting: str) -> None:
    result = benchpool("cancel", "aaaaaaaa", waiting)
    assert result.status == 2
    assert benchpool("show", "--json", waiting).json["job"]["state"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "by", "status"),
    [
        (["show", "zzzzzzzz"], "susan", 2),
        (["show", "x"], "susan", 2),
        (["jobs", "--state", "sleeping"], "susan", 2),
        (["quota", "--user", "joe"], "susan", 2),
        (["config", "check", "benchpool.yaml"], "susan", 3),
        (["config", "check", "missing.yaml"], "root", 2),
        (["config", "check", "benchpool.yaml"], "root", 0),
        (["jobs"], "stranger", 3),
        (["nothing"], "susan", 2),
        (["jobs", "--url", "http://127.0.0.1:1/services/benchpool"], "susan", 4),
        (["jobs", "--url", "ftp://here"], "susan", 2),
    ],
)
def test_exit_status_depends_on_error_kind(
    benchpool: Benchpool, folder: Path, words: list[str], by: str, status: int
) -> None:
    (folder / "benchpool.yaml").write_text(CONFIGURATION)
    words = [str(folder / word) if word.endswith(".yaml") else word for word in words]
    result = benchpool(*words, by=by)
    assert result.status == status
    assert bool(result.err) == (status != 0)
    if status:
        as_json = benchpool(*words, "--json", by=by)
        assert as_json.json["error"]["message"]
        assert as_json.status == status


def test_configuration_is_applied_atomically(benchpool: Benchpool, folder: Path) -> None:
    good, bad = folder / "good.yaml", folder / "bad.yaml"
    good.write_text(CONFIGURATION.replace("joe], ", "joe], ").replace("quota: 2", "quota: 1"))
    bad.write_text(CONFIGURATION.replace("quota:", "qouta:"))
    refused = benchpool("config", "apply", "--json", str(bad), by="root").json["error"]
    assert "qouta" in refused["message"]
    assert "quota" in refused["message"]
    applied = benchpool("config", "apply", "--json", str(good), by="root").json
    assert applied["applied"]
    assert any("vision" in line for line in applied["changes"])
    projects = benchpool("quota", "--json").json["projects"]
    assert [(one["name"], one["quota"]) for one in projects] == [("vision", 1)]


def test_unreadable_or_invalid_file_is_named(benchpool: Benchpool, folder: Path) -> None:
    good, bad = folder / "good.yaml", folder / "bad.yaml"
    good.write_text(CONFIGURATION)
    bad.write_text(CONFIGURATION.replace("quota:", "qouta:"))
    assert f"Read {good}." in benchpool("config", "check", str(good), by="root").out
    for verb in ("check", "apply"):
        assert f"{bad}, line " in benchpool("config", verb, str(bad), by="root").err
    assert f"{bad}, line " in benchpool("apply", "-f", str(bad), by="root").err


def test_users_are_listed_with_quota_rule_and_projects(benchpool: Benchpool) -> None:
    result = benchpool("people", by="root")
    (susan,) = [line for line in result.out.splitlines() if line.startswith("susan")]
    assert susan.split() == ["susan", "0/1", "user", "susan", "never", "vision"]
    (jemma,) = [one for one in benchpool("people", "--json", by="root").json if one["leads"]]
    assert (jemma["name"], jemma["leads"], jemma["known"]) == ("jemma", ["vision"], True)
    assert benchpool("people").status == 3


def test_node_is_drained_uncordoned_and_annotated(
    benchpool: Benchpool,
) -> None:
    (node,) = [one["name"] for one in benchpool("nodes", "--json", by="root").json]
    drained = benchpool("node", "drain", node, "--reason", "new disk", by="root")
    assert drained.out.startswith(f"{node} drains (new disk): no job starts there")
    opened = benchpool("node", "uncordon", node, by="root")
    assert (opened.status, opened.err) == (0, "")
    assert opened.out.startswith(f"{node} accepts jobs.")
    assert "fan" in benchpool("node", "note", node, "--text", "fan 2 is loud", by="root").out
    assert "fan" not in benchpool("node", "note", node, by="root").out


def test_replay_requires_history(benchpool: Benchpool) -> None:
    result = benchpool("replay", "--history", "7", by="root")
    assert result.status == 2
    assert "No job ran and ended in the last 7 days" in result.err


def test_single_values_are_set_shown_and_reverted(benchpool: Benchpool) -> None:
    tried = benchpool("config", "set", "projects.vision.quota=1", "--dry-run", by="root")
    assert "guaranteed quota 2 → 1" in tried.out
    assert tried.out.count("Preview only") == 1
    done = benchpool(
        *("config", "set", "projects.vision.quota=1", "projects.vision.members+=zoe"),
        *("--reason", "spring"),
        by="root",
    )
    assert done.status == 0, done.err
    assert "guaranteed quota 2 → 1" in done.out
    assert "zoe may use it now" in done.out
    newest, *_ = benchpool("config", "log", "--json", by="root").json
    assert (newest["author"], newest["reason"], newest["way"]) == ("root", "spring", "set")
    assert "spring" in benchpool("config", "log", by="root").out
    shown = benchpool("config", "show", by="root").out
    assert "zoe" in shown
    assert yaml.safe_load(shown)["version"] == 1, "its lines keep their places"
    back = benchpool("config", "revert", "--reason", "too early", by="root")
    assert "guaranteed quota 1 → 2" in back.out
    assert "zoe" not in benchpool("config", "show", by="root").out
    wrong = benchpool("config", "set", "projects.visoin.quota=1", by="root")
    assert wrong.status == 2
    assert "did you mean `vision`" in wrong.err


def test_missing_service_shows_how_to_start(folder: Path, tmp_path: Path) -> None:
    environ: Mapping[str, str] = {"BENCHPOOL_STATE": str(tmp_path / "none")}
    assert cli.run(["jobs"], environ, folder) == 4


def test_every_verb_has_help_and_json(benchpool: Benchpool) -> None:
    for verb in cli.VERBS:
        result = benchpool(*verb.path, "--help")
        assert result.status == 0
        assert verb.summary.split()[0] in result.out
        assert "--json" in result.out


def test_child_projects_are_listed_below_parent(benchpool: Benchpool) -> None:
    below = ["projects.deep.name=deep", "projects.deep.parent=speech", "projects.speech.members=[]"]
    done = benchpool("config", "set", *below, by="root")
    assert done.status == 0, done.err
    lines = benchpool("status", by="root").out.splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("speech "))
    assert lines[first + 1].startswith("  deep ")
