"""Case files are parsed strictly, and results have the fixed form (formats, section 1)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchpool_scheduler.core.model import Plan, Snapshot, Start
from benchpool_scheduler.core.plan import decide
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation import passes, report, run, run_shares

GOOD = """
version: 1
case: borrow
title: an idle neighbour's GPUs are lent
nodes:
  - {name: n0, gpus: 4, labels: {rack: r1}}
projects:
  - {name: susan, quota: 2}
  - {name: joe, quota: 2}
jobs:
  - {name: a, project: susan, gpus: 4, state: running, nodes: [n0]}
  - {name: b, project: joe, gpus: 2}
expect:
  a: {state: queued}
  b: {state: running, nodes: [n0]}
  preempted: [a]
"""


def file(folder: Path, text: str) -> Path:
    path = folder / "cases.yaml"
    path.write_text(text)
    return path


def printed(path: Path, **options: object) -> tuple[int, list[str]]:
    lines: list[str] = []
    status = run([path], echo=lines.append, **options)  # type: ignore[arg-type]
    return status, lines


def test_passing_case_prints_one_row_and_status_0(tmp_path: Path) -> None:
    assert printed(file(tmp_path, GOOD)) == (0, ["ok   borrow", "1 ok, 0 failed, 0 skipped"])


def test_failing_case_shows_difference_and_status_1(tmp_path: Path) -> None:
    wrong = GOOD.replace("a: {state: queued}", "a: {state: running}")
    status, lines = printed(file(tmp_path, wrong.replace("preempted: [a]", "preempted: []")))
    assert status == 1
    assert lines == [
        "FAIL borrow: a is queued, not running; preempted [a], not []",
        "0 ok, 1 failed, 0 skipped",
    ]


def test_rule_violation_fails_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1, R8 and R10 are checked after each pass, for any expectation of the case."""

    def lying(snapshot: Snapshot) -> Plan:
        plan = decide(snapshot)
        starts = [command for command in plan.commands if isinstance(command, Start)]
        lies = [replace(one, workers=snapshot.jobs[0].held[:1], after=()) for one in starts]
        return replace(plan, commands=tuple(lies))

    monkeypatch.setattr(passes, "decide", lying)
    text = GOOD[: GOOD.index("expect:")]
    status, lines = printed(file(tmp_path, text))
    assert status == 1
    assert lines[0].startswith(
        "FAIL borrow: pass 1 violates R1: GPU n0/0 on node n0 would be held by a and b"
    )


def test_case_with_missing_feature_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "SUPPORTED", ("elastic",))
    status, lines = printed(file(tmp_path, GOOD + "requires: [fractions]\n"))
    assert (status, lines[0]) == (0, "skip borrow: needs fractions")


@pytest.mark.parametrize("gpus", [1.5, 0.0, 0.1234, -0.5])
def test_gpu_fraction_is_below_one_in_thousandths(tmp_path: Path, gpus: float) -> None:
    wrong = GOOD.replace("project: joe, gpus: 2", f"project: joe, gpus: {gpus}")
    with pytest.raises(InvalidInput, match="case borrow, job b must be a whole number, or a share"):
        printed(file(tmp_path, wrong))


def test_explain_adds_reason_of_every_waiting_job(tmp_path: Path) -> None:
    _, lines = printed(file(tmp_path, GOOD), explain=True)
    assert lines[1].startswith("     a: waits for 4 GPUs: 2 of 4 are free; project susan holds 0")


def test_json_has_fixed_keys(tmp_path: Path) -> None:
    _, lines = printed(file(tmp_path, GOOD), json=True)
    (answer,) = json.loads("\n".join(lines))
    assert set(answer) == {
        *("case", "result", "passes", "jobs", "preempted", "moved", "shares", "pass_ms")
    }
    assert answer["jobs"]["b"] == {
        "state": "running",
        "workers": 1,
        "nodes": ["n0"],
        "reason": None,
    }
    assert answer["jobs"]["a"]["reason"]["code"] == "fair-share-reached"
    shares = {"quota": 2, "guaranteed": 2, "fair_share": 2, "allocated": 0}
    assert answer["shares"]["susan"] == shares
    assert (answer["passes"], answer["preempted"], answer["moved"]) == (7, ["a"], [])


def test_case_is_selected_by_name(tmp_path: Path) -> None:
    path = file(tmp_path, GOOD + "---" + GOOD.replace("case: borrow", "case: other"))
    assert printed(path, case="other")[1][0] == "ok   other"
    with pytest.raises(InvalidInput, match="contains no case third"):
        printed(path, case="third")


MISTAKES = [
    ("gpus: 2}", "gpu: 2}", "unknown key gpu in HERE, a job; the nearest known key is gpus"),
    ("title:", "titel:", "unknown key titel in FILE; the nearest known key is title"),
    ("{rack: r1}", "[r1]", "labels in HERE, a node must be a mapping of names to values"),
    ("  b: {state", "  c: {state", "unknown key c in HERE, expect; the nearest known key is"),
    ("[a]", "[z]", "unknown key z in HERE, expect preempted"),
    ("version: 1", "version: 2", "version in HERE must be 1, not 2"),
    ("gpus: 2}", "gpus: two}", "gpus in HERE, job b must be a whole number from 0, not 'two'"),
    ("project: joe", "project: jo", "HERE: there is no project jo; the projects are susan, joe"),
    ("nodes: [n0]", "nodes: [n9]", "nodes in HERE, job a must be names of declared nodes"),
    ("gpus: 4, labels", "gpus: 3, labels", "must be nodes with room; n0 has 3 GPUs left"),
    ("{name: joe,", "{name: susan,", "HERE: project susan is declared twice"),
    ("quota: 2}", "quota: 2, parent: lab}", "HERE: project susan has the parent lab"),
    ("nodes:\n", "nodes: [\n", "is not YAML"),
    (
        "jobs:",
        "policy: {grace: 1}\njobs:",
        "unknown key grace in HERE, policy; the nearest known key is grace_s",
    ),
]


@pytest.mark.parametrize(("old", "new", "sentence"), MISTAKES)
def test_error_names_key_file_and_nearest_known_key(
    tmp_path: Path, old: str, new: str, sentence: str
) -> None:
    assert old in GOOD
    path = file(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InvalidInput) as caught:
        printed(path)
    wanted = sentence.replace("HERE", f"{path}, case borrow").replace("FILE", str(path))
    assert wanted in str(caught.value)
    assert caught.value.exit_status == 2


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        printed(tmp_path / "none.yaml")


def test_wrong_division_fails_with_result(tmp_path: Path) -> None:
    path = tmp_path / "shares.yaml"
    path.write_text(
        "- {name: d, total: 3, projects: [{name: a, quota: 1, weight: 1, limit: null, "
        "priority: 0, demand: 3}], shares: {a: 2}, rest: 0}\n"
    )
    lines: list[str] = []
    assert run_shares([path], echo=lines.append) == 1
    assert lines == ["FAIL d: a gets 3, not 2", "0 ok, 1 failed, 0 skipped"]
