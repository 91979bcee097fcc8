"""Each decision is made in one module; a second computation elsewhere fails here.

The core decides and the shells render. Each check looks for names that a second computation would
need.
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


def test_command_effects_are_computed_in_one_module() -> None:
    """Progress is added up in the core only; snapshots pass on what attempts really ran."""
    found = {
        name
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "done_s"
    }
    assert found == {EFFECTS, SNAPSHOTS}


def test_view_does_not_compute_over_quota_gpus() -> None:
    tree = tree_of("benchpool_scheduler.service.views.gpu_states")
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "over_quota" in read
    assert not read & {"quota", "submitted", "priority", "preemptible"}


def test_service_does_not_choose_reserved_nodes() -> None:
    tree = tree_of("benchpool_scheduler.service.benches.bench_reserve")
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)]


def test_pages_do_not_compute_job_actions() -> None:
    """The buttons of a page come from ``Job.actions``, not from the state of the job."""
    tree = tree_of("benchpool_scheduler.web.job_rows")
    function = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "actions"
    )
    read = {node.attr for node in ast.walk(function) if isinstance(node, ast.Attribute)}
    assert "actions" in read
    assert "state" not in read


def test_core_decides_whether_job_can_ever_run() -> None:
    """Refusals are worded in one function, after the core has answered "never"."""
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
