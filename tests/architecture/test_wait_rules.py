"""Tests wait for events: no short limits, no measured times, no sleeps, no network."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from benchpool_support import checkout

SHORTEST_S = 30
"""Minimum limit of a wait, in seconds. A wait that succeeds returns at once."""

CLOCKS = {"time.monotonic", "time.perf_counter", "time.process_time", "time.thread_time"}
MEASURED = {"seconds", "took", "elapsed"}
"""Names of measured times."""

INSTALLERS = {"pip", "uv", "npm", "npx", "apt", "apt-get"}
OWN_LOOP = "polls in a loop of its own; use until"
EXPECTS = ("pytest.raises", "raises")
"""Blocks that test a timeout."""

STANDS_ALONE = "it runs without the support of the tests"
ITS_LIMIT = "this limit of the product is what is tested, and is waited for"
ALLOWED = {
    "cluster/benchpool_cluster/debian.py::install": "it is called by the Makefile alone",
    "packaging/prove_wheel.py::installed_listing": "it is called by the Makefile alone",
    "support/benchpool_support/hub_environments.py::make": "it is called by the Makefile alone",
    "scheduler/api/test_unfinished_bodies.py::impatient": ITS_LIMIT,
    "scheduler/client/test_clients.py::test_only_idempotent_requests_are_retried": ITS_LIMIT,
    "scheduler/gate/test_body_streaming.py::test_stalled_body_is_rejected_with_timeout": ITS_LIMIT,
    "scheduler/gate/test_body_streaming.py::test_slow_program_is_not_blamed_on_sender": ITS_LIMIT,
    "spawner/test_lease_client.py::test_slow_release_does_not_delay_server_stop": (ITS_LIMIT),
    "workstation/test_slow_disks.py::test_hub_writes_during_database_copy": (
        "a lock that is held makes it fail at once"
    ),
    "suite.py::run": STANDS_ALONE,
    "support/benchpool_support/forked.py::Fork.wait": STANDS_ALONE,
    "support/benchpool_support/failing_calls.py::patiently": "what it tries may raise",
    "kubernetes/test_submission_timeouts.py::Answers._until_accepted": (
        "a client that comes again when it was told to"
    ),
    "scheduler/service/test_sweeps.py::test_sweep_runs_each_trial_once_through_random_faults": (
        "each turn of the loop moves the trials"
    ),
}
"""Exceptions with their reasons, by file below ``tests`` and function."""

POLLS = ("tests/cluster/benchpool_cluster/", "tests/support/benchpool_support/waiting.py")
"""Files that may poll: the cluster is a separate program, and ``until`` is defined there."""

Found = tuple[str, str]
"""Function of a finding, and its description."""


class Rules(ast.NodeVisitor):
    """Visitor that collects the forbidden waits of one file."""

    def __init__(self, tree: ast.Module) -> None:
        self.found: list[Found] = []
        self._where = ["module"]
        self._expects = 0
        self._measured: set[str] = set(MEASURED)
        self._constants = dict(_constants(tree))
        self.visit(tree)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._inside(node.name, node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        names = node.args.posonlyargs + node.args.args
        given = [*zip(reversed(names), reversed(node.args.defaults), strict=False)]
        for name, default in (
            *given,
            *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True),
        ):
            if name.arg in ("seconds", "timeout") or name.arg.startswith("patience"):
                self._limit(default, node.name)
        known = set(self._measured)
        self._inside(node.name, node)
        self._measured = known

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        expects = any(_called(item.context_expr) in EXPECTS for item in node.items)
        self._expects += expects
        self.generic_visit(node)
        self._expects -= expects

    visit_AsyncWith = visit_With

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        if name.rpartition(".")[2] != "timedelta":
            for keyword in node.keywords:
                if keyword.arg in ("timeout", "seconds") or (keyword.arg or "").startswith(
                    "patience"
                ):
                    self._limit(keyword.value)
        if name in ("asyncio.timeout", "timeout") and node.args:
            self._limit(node.args[0])
        if name in ("asyncio.wait_for", "wait_for") and len(node.args) > 1:
            self._limit(node.args[1])
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if _is_difference(node.value):
            self._measured |= {it.id for it in ast.walk(node) if isinstance(it, ast.Name)} - {
                "time"
            }
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        for one in ast.walk(node.test):
            if isinstance(one, ast.Compare):
                self._compared(one)
        self.generic_visit(node)

    def visit_List(self, node: ast.List | ast.Tuple) -> None:
        words = {it.value for it in node.elts if isinstance(it, ast.Constant)}
        if INSTALLERS & words:
            self._note("uses the network")
        self.generic_visit(node)

    visit_Tuple = visit_List

    def visit_While(self, node: ast.While) -> None:
        if any(map(_sleeps, ast.walk(node))):
            self._note(OWN_LOOP)
        self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> None:
        for block in ("body", "orelse", "finalbody"):
            lines = getattr(node, block, None)
            if isinstance(lines, list):
                for line, then in itertools.pairwise(lines):
                    slept = isinstance(line, ast.Expr) and _sleeps(_awaited(line.value))
                    if slept and (isinstance(then, ast.Assert) or _raises(then)):
                        self._note("sleeps before an assertion")
        super().generic_visit(node)

    def _inside(self, name: str, node: ast.AST) -> None:
        self._where.append(name)
        self.generic_visit(node)
        self._where.pop()

    def _note(self, what: str, function: str = "") -> None:
        where = [*self._where[1:], *([function] if function else [])] or self._where
        self.found.append((".".join(where), what))

    def _limit(self, value: ast.expr | None, function: str = "") -> None:
        number = self._number(value)
        if number is not None and 0 < number < SHORTEST_S and not self._expects:
            self._note(f"waits only {number:g} s", function)

    def _number(self, value: ast.expr | None) -> float | None:
        if isinstance(value, ast.Name):
            return self._constants.get(value.id)
        constant = value.value if isinstance(value, ast.Constant) else None
        return constant if isinstance(constant, (int, float)) else None

    def _compared(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for left, op, right in zip(sides, node.ops, sides[1:], strict=False):
            small, large = (right, left) if isinstance(op, (ast.Gt, ast.GtE)) else (left, right)
            if not isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)):
                continue
            named = {_last(it) for it in ast.walk(small)} & self._measured
            bound = isinstance(large, ast.Constant) or _last(large).isupper()
            if _is_difference(small) or (named and bound and not isinstance(small, ast.BinOp)):
                self._note("has an upper bound of measured time")


def _constants(tree: ast.Module) -> Iterator[tuple[str, float]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            if isinstance(value, (int, float)):
                yield from ((it.id, value) for it in node.targets if isinstance(it, ast.Name))


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _awaited(node: ast.expr) -> ast.expr:
    return node.value if isinstance(node, ast.Await) else node


def _sleeps(node: ast.AST) -> bool:
    """Return whether this is a call that sleeps. A sleep of 0 s only yields to other tasks."""
    if _called(node) not in ("time.sleep", "asyncio.sleep"):
        return False
    assert isinstance(node, ast.Call)
    return ast.unparse(node.args[0]) != "0"


def _raises(node: ast.stmt) -> bool:
    withs = (ast.With, ast.AsyncWith)
    return isinstance(node, withs) and any(_called(it.context_expr) in EXPECTS for it in node.items)


def _is_difference(node: ast.expr) -> bool:
    return any(
        isinstance(one, ast.BinOp)
        and isinstance(one.op, ast.Sub)
        and any(_called(it) in CLOCKS for it in ast.walk(one))
        for one in ast.walk(node)
    )


def files() -> Iterable[Path]:
    """Yield every Python file of the tests and of their support packages."""
    yield from checkout.test_files()
    for package in checkout.FOR_TESTS:
        yield from package.rglob("*.py")


def test_tests_wait_for_events() -> None:
    found = {
        f"{checkout.relative(path).removeprefix('tests/')}::{where}": what
        for path in files()
        for where, what in Rules(ast.parse(path.read_text())).found
        if what != OWN_LOOP or not checkout.relative(path).startswith(POLLS)
    }
    wrong = [f"{where} {what}" for where, what in sorted(found.items()) if where not in ALLOWED]
    assert not wrong, "\n".join(wrong)
    assert sorted(ALLOWED.keys() - found) == [], "these exceptions are not needed any more"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("job.result(timeout=5)", "waits only 5 s"),
        ("SOON_S = 2.0\nawait asyncio.wait_for(it, SOON_S)", "waits only 2 s"),
        ("async with asyncio.timeout(29.5): pass", "waits only 29.5 s"),
        ("until(look, seconds=1)", "waits only 1 s"),
        ("Client(patience_s=0.5)", "waits only 0.5 s"),
        ("def look(at, seconds=3): pass", "waits only 3 s"),
        ("assert time.monotonic() - begun < 60", "has an upper bound of measured time"),
        ("assert 1 > time.perf_counter() - begun", "has an upper bound of measured time"),
        ("a = time.monotonic() - b\nassert a <= 9", "has an upper bound of measured time"),
        ("assert max(self.seconds) < MOST_S", "has an upper bound of measured time"),
        ("time.sleep(1)\nassert done", "sleeps before an assertion"),
        (
            "await asyncio.sleep(n)\nwith pytest.raises(Refused): ask()",
            "sleeps before an assertion",
        ),
        ("subprocess.run(['python', '-m', 'pip', 'install', 'x'])", "uses the network"),
        ("run('apt-get', ('apt-get', 'update'))", "uses the network"),
        ("while not done():\n    time.sleep(0.1)", OWN_LOOP),
    ],
)
def test_each_forbidden_wait_is_detected(source: str, what: str) -> None:
    lines = "".join(f"    {line}\n" for line in source.splitlines() if not line.startswith("SOON"))
    above = "SOON_S = 2.0\n" if source.startswith("SOON") else ""
    found = Rules(ast.parse(f"{above}async def test_it():\n{lines}")).found
    assert found[0][1] == what
    assert found[0][0].startswith("test_it")


@pytest.mark.parametrize(
    "source",
    [
        "job.result(timeout=120)",
        "logs.wait(timeout=0)",
        "begin = now - timedelta(seconds=1)",
        "with pytest.raises(TimeoutError): job.result(timeout=0.1)",
        "await asyncio.sleep(0)\nassert done",
        "assert 5 < time.monotonic() - begun",
        "while not done():\n    await asyncio.sleep(0)",
    ],
)
def test_permitted_waits_are_accepted(source: str) -> None:
    lines = "".join(f"    {line}\n" for line in source.splitlines())
    assert Rules(ast.parse(f"async def test_it():\n{lines}")).found == []
