"""Each decision has one place: a second opinion in another module fails here.

The core answers and shells render. What is looked for is what a second formula could not do
without.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchpool_support import checkout

SCHEDULER = checkout.PRODUCT[0]
EFFECTS = "benchpool_scheduler.core.effects"
SNAPSHOTS = "benchpool_scheduler.service.cluster_state.snapshots"


def trees() -> Iterator[tuple[str, ast.Module]]:
    for module in checkout.modules(SCHEDULER):
        yield module.name, ast.parse(module.path.read_text("utf-8"))


def tree_of(name: str) -> ast.Module:
    return next(tree for found, tree in trees() if found == name)


def test_what_a_command_does_to_a_job_is_said_in_one_module() -> None:
    """Only there is progress counted up; the service tells what attempts really ran."""
    found = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "done_s"
    }
    assert found == {EFFECTS, SNAPSHOTS}


def test_which_gpus_are_over_quota_is_not_worked_out_by_the_view() -> None:
    tree = tree_of("benchpool_scheduler.service.views.gpu_states")
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "over_quota" in read
    assert not read & {"quota", "submitted", "priority", "preemptible"}


def test_on_which_nodes_gpus_are_kept_for_benches_is_not_chosen_by_the_service() -> None:
    tree = tree_of("benchpool_scheduler.service.benches.bench_reserve")
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]


def test_what_may_be_done_to_a_job_is_not_worked_out_by_pages() -> None:
    """The buttons of a page come from ``Job.actions``; its states only sort and word."""
    tree = tree_of("benchpool_scheduler.web.job_rows")
    function = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "actions"
    )
    read = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    assert "actions" in read
    assert "state" not in read


def test_whether_a_job_can_ever_run_is_asked_of_the_core() -> None:
    """What words a refusal is called in one function alone, after the core has said never."""
    wording = {"check_size", "check_places", "capacity"}
    callers = {
        (name, function.name)
        for name, tree in trees()
        if name.startswith("benchpool_scheduler.service.jobs")
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) in wording
    }
    assert callers == {("benchpool_scheduler.service.jobs.feasibility", "check")}
