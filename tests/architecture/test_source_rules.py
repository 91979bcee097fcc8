"""Rules for the source: unique names, and modules and functions of limited length.

Each set of exceptions only shrinks: a repaired item must be removed from it.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from benchpool_support import checkout

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60

TWICE: frozenset[str] = frozenset()
"""Names of public classes of the product that are defined more than once."""

LONG: frozenset[str] = frozenset()
"""Modules above the length limit."""

LONG_FUNCTIONS: frozenset[str] = frozenset()
"""Functions above the length limit."""

PRIVATE = 0
"""Maximum number of uses of private names of the product in tests."""

ASKS = {
    f"httpx.{name}"
    for name in (
        "AsyncClient",
        "Client",
        "delete",
        "get",
        "patch",
        "post",
        "put",
        "request",
        "stream",
    )
}
"""Calls that use the proxies of the environment unless an argument disables them."""


ENDS = {"process.wait()"}
"""Waits at the end of a process, where a lost cancellation does no harm."""


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


def all_files() -> Iterator[Path]:
    """Yield every Python file of the product and of its tests."""
    yield from (module.path for module in checkout.modules())
    yield from checkout.test_files()


def test_public_class_name_is_unique() -> None:
    found = defaultdict(list)
    for module in checkout.modules(*checkout.PRODUCT):
        for node in tree(module.path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module.name)
    twice = {name: sorted(where) for name, where in found.items() if len(where) > 1}
    assert_only(twice, TWICE)


def test_module_length_is_limited() -> None:
    lines = {path: path.read_text().count("\n") for path in all_files()}
    assert_only(
        {checkout.relative(path): number for path, number in lines.items() if number > MOST_LINES},
        LONG,
    )


def test_function_length_is_limited() -> None:
    found = {}
    for module in checkout.modules():  # tests are exempt
        for node in ast.walk(tree(module.path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > MOST_LINES_OF_A_FUNCTION:
                    found[f"{module.name}.{node.name}"] = lines
    assert_only(found, LONG_FUNCTIONS)


def test_tests_use_public_names() -> None:
    uses = Counter(
        {
            checkout.relative(path): number
            for path in checkout.test_files()
            if (number := private(path))
        }
    )
    assert uses.total() <= PRIVATE, f"more than {PRIVATE} uses of private names: {uses}"


def private(path: Path) -> int:
    """Count the uses of private names that no class or module of this file defines.

    ``os._exit`` and ``ssl._create_unverified_context`` have no public names.
    """
    nodes = list(ast.walk(tree(path)))
    own = {node.attr for node in nodes if isinstance(node, ast.Attribute) and of_itself(node)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return sum(
        isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and node.attr not in own
        and not (isinstance(node.value, ast.Name) and node.value.id in {"os", "ssl"})
        for node in nodes
    )


def of_itself(node: ast.Attribute) -> bool:
    """Return whether it is an attribute of ``self`` or ``cls``."""
    return isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}


def assert_only(found: Mapping[str, object], known: frozenset[str]) -> None:
    """Check that the findings equal the known exceptions."""
    new = {name: about for name, about in found.items() if name not in known}
    mended = sorted(known - set(found))
    assert not new, f"new: {new}"
    assert not mended, f"mended, so take it out of the set: {mended}"


def test_no_test_is_rerun() -> None:
    given = [checkout.ROOT / name for name in ("Makefile", "pyproject.toml", ".ci/run")]
    assert [path.name for path in given if "rerun" in path.read_text()] == []


def test_tests_ignore_proxies_of_environment() -> None:
    assert [
        f"{checkout.relative(path)}:{node.lineno}"
        for path in all_files()
        if path.is_relative_to(checkout.ROOT / "tests") and path.name != "direct.py"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ASKS
        and not any(option.arg in ("trust_env", "transport") for option in node.keywords)
    ] == [], "take benchpool_support.direct"


def test_tests_name_no_fixed_temporary_path() -> None:
    """A file of that name may exist on the machine, or another run may write it."""
    assert [
        f"{checkout.relative(path)}:{node.lineno}"
        for path in all_files()
        if path.is_relative_to(checkout.ROOT / "tests")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in {"Path", "open"}
        and isinstance(node.args[0] if node.args else None, ast.Constant)
        and str(ast.literal_eval(node.args[0])).startswith("/tmp/")
    ] == [], "take tmp_path"


def test_no_event_wait_may_lose_cancel() -> None:
    """Until Python 3.12 ``wait_for`` may swallow a cancellation that arrives with the event."""
    assert [
        f"{module.name}:{node.lineno}"
        for module in checkout.modules(*checkout.PRODUCT)
        for node in ast.walk(tree(module.path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "asyncio.wait_for"
        and ast.unparse(node.args[0]).endswith(".wait()")
        and ast.unparse(node.args[0]) not in ENDS
    ] == [], "take asyncio.timeout"
