"""Queries about the pool or a job change neither of them (decision 0030)."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from benchpool_scheduler.core.lifecycle.states import JobState
from benchpool_scheduler.runtime import EndedBy
from benchpool_scheduler.service.ledger import runtime_estimator
from benchpool_scheduler.service.ledger.runtime_estimator import RuntimeEstimator
from benchpool_scheduler.service.views import pool_views
from benchpool_scheduler.store.records import AttemptRecord, JobRecord
from benchpool_support.job_records import attempt, job

CHANGING = {"append", "add", "update", "pop", "clear", "setdefault", "discard", "remove", "extend"}


def ran(name: str, seconds: float) -> tuple[JobRecord, tuple[AttemptRecord, ...]]:
    """Return a job that ended by itself after the given number of seconds."""
    ended = job(id=name, name="train", state=JobState.SUCCEEDED, attempt=1, ended=100 + seconds)
    once = attempt(ended, "a", started=100.0)
    return ended, (replace(once, ended=100 + seconds, ended_by=EndedBy.ITSELF),)


def learn(estimator: RuntimeEstimator, seconds: float) -> None:
    for number in range(4):
        record, attempts = ran(f"k{number}-{seconds}", seconds)
        estimator.see([(replace(record, ended=None), ())])
        estimator.see([(record, attempts)])


def test_run_time_estimate_is_independent_of_earlier_queries() -> None:
    estimator, waits = RuntimeEstimator(), job(id="w", name="train")
    assert estimator.facts(waits, ()).expected_run_s is None
    learn(estimator, 60.0)
    assert estimator.facts(waits, ()).expected_run_s == 60.0
    assert estimator.facts(waits, ()).expected_run_s == 60.0


def test_run_time_estimate_stays_until_job_changes() -> None:
    estimator, waits = RuntimeEstimator(), job(id="w", name="train")
    learn(estimator, 60.0)
    estimator.see([(waits, ())])
    for _ in range(3):
        learn(estimator, 6000.0)
    assert estimator.facts(waits, ()).expected_run_s == 60.0
    began = replace(waits, attempt=1)
    estimator.see([(began, (attempt(began, "a"),))])
    assert estimator.facts(began, (attempt(began, "a"),)).expected_run_s == 6000.0


def test_run_time_estimate_uses_jobs_ended_in_same_commit() -> None:
    estimator, waits = RuntimeEstimator(), job(id="w", name="train")
    ended = [ran(f"k{number}", 60.0) for number in range(4)]
    estimator.see([(replace(record, ended=None), ()) for record, _ in ended])
    estimator.see([(waits, ()), *ended])
    assert estimator.facts(waits, ()).expected_run_s == 60.0


QUERIES = (
    (pool_views.PoolViews, {"__init__"}),
    (runtime_estimator.RuntimeEstimator, {"__init__", "fill", "see", "forget", "renew"}),
)
"""Classes with their methods that may write; methods called by these may write too."""


def writes(function: ast.FunctionDef) -> Iterator[str]:
    """Yield each statement by which a method changes attributes of its object."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            single = isinstance(node, ast.AugAssign | ast.AnnAssign)
            targets = [node.target] if single else node.targets  # type: ignore[union-attr]
            for target in targets:
                if ast.unparse(target).startswith("self."):
                    yield ast.unparse(node)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in CHANGING
            and ast.unparse(node.func).startswith("self.")
        ):
            yield ast.unparse(node)


def called(function: ast.FunctionDef) -> set[str]:
    """Return the names of the object's own attributes and methods that a method uses."""
    return {
        node.attr
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }


@pytest.mark.parametrize(("of", "changing"), QUERIES, ids=lambda it: getattr(it, "__name__", ""))
def test_query_methods_never_write_state(of: type, changing: set[str]) -> None:
    tree = ast.parse(inspect.getsource(of))
    methods = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    asked = [name for name in methods if not name.startswith("_") and name not in changing]
    seen: set[str] = set()
    while asked:
        name = asked.pop()
        if name in methods and name not in seen:
            seen.add(name)
            assert not list(writes(methods[name])), name
            asked += called(methods[name])
    assert seen
