"""Names of functions, classes, arguments and variables: words to avoid in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from benchpool_support import checkout

WORDS = re.compile(
    r"(?<![a-z])(?:said|says?|told|tells?|telling|hears?|heard|anew|wish(?:es)?|nobody|somebody"
    r"|whoever|strangers?|vain|go(?:es)?_on)(?![a-z])"
)
"""Words of a private vocabulary, in lower case."""

FIXED = {
    "tell_s": "key of the configuration and field of answers",
    "go_on": "field of an adoption request",
    "said": "stored field of a preemption and of a service",
    "told": "stored field of the delivery log",
    "tell": "method of file objects in Python",
    "TOLD": "member of an enumeration, named after its value",
    "TELL": "member of an enumeration, named after its value",
    "_TOLD": "alias of that member",
    "CANNOT_BE_TOLD": "member of an enumeration, named after its value",
}
"""Names that are stored, sent or defined elsewhere."""

FOLDERS = (
    "scheduler",
    "spawner",
    "extension/benchpool",
    "integrations",
    "benchmarks",
    "images",
    "docs",
    "tests",
)


def avoided(name: str) -> list[str]:
    """Return the words of a name that are to be avoided.

    >>> avoided("ToldUsage"), avoided("_go_on_elsewhere"), avoided("retold")
    (['told'], ['go_on'], [])
    """
    if name in FIXED:
        return []
    return WORDS.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def bound(source: str) -> Iterator[tuple[int, str]]:
    """Yield every name that a module defines or assigns, with its line."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.arg(arg=name)
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield node.lineno, name
            case _:
                pass


@pytest.mark.parametrize("folder", FOLDERS)
def test_names_use_plain_words(folder: str) -> None:
    sources = sorted((checkout.ROOT / folder).rglob("*.py"))
    assert sources
    assert [
        f"{checkout.relative(path)}:{line}: {name}"
        for path in sources
        if "node_modules" not in path.parts
        for line, name in bound(path.read_text("utf-8"))
        if avoided(name)
    ] == []
