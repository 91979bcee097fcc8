"""Examples in docstrings are run, in every package including the tests'."""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator

import pytest

from benchpool_support import checkout

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


SIGN = ">>> "


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Yield each string statement with examples and its line, attribute docstrings included."""
    for node in ast.walk(ast.parse(source)) if SIGN in source else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            value = node.value.value
            if isinstance(value, str) and SIGN in value:
                yield node.lineno - 1, value


WITH_EXAMPLES = [file for file in checkout.modules() if next(texts(file.path.read_text()), None)]


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda file: file.name)
def test_docstring_examples_pass(file: checkout.Module) -> None:
    module = importlib.import_module(file.name)
    runner, parser = doctest.DocTestRunner(optionflags=OPTIONS), doctest.DocTestParser()
    output: list[str] = []
    for line, text in texts(file.path.read_text()):
        found = parser.get_doctest(text, dict(vars(module)), file.name, str(file.path), line)
        assert found.examples, f"{file.path}:{line}: the examples are not read as such"
        runner.run(found, out=output.append)
    assert not runner.failures, "".join(output)
