"""The analysis finds every name that IPython substitutes in a line."""

from __future__ import annotations

import importlib
import pkgutil
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IPython.core import magics as core_magics
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import MAGIC_NO_VAR_EXPAND_ATTR

from benchpool.cells import magic_meanings
from benchpool.cells.substitution import expressions_in, names_in, single_names
from benchpool_support.examples import examples

VALUES = {name: f"<{name}>" for name in ("a", "b", "c")}
PIECES = st.sampled_from(
    [
        *("{a}", "{b}", "$a", "$b", "$$c", "$a.b", "${c}", "{a,b}", "{a[1]}", "{a[1:2]}", "{{a}}"),
        *("{", "}", "$", "'", '"', " ", "$1", "{1..3}", "{}", "{a!r}", "{c:>3}", "{len(b)}", "x"),
        *(
            "{[c for c in a]}",
            "{'a'}",
            "\\",
            "\n",
            "{ a }",
            "{a",
            "$é",
            "{(lambda: c)()}",
            "{a}.txt",
        ),
    ]
)


def filled(line: str, names: dict[str, str]) -> str:
    """Return what IPython makes of a line in a namespace."""
    shell = SimpleNamespace(user_ns=dict(names))
    return str(InteractiveShell.var_expand(shell, line))


@settings(max_examples=examples(1000), deadline=None)
@given(st.lists(PIECES | st.text(max_size=3), max_size=8).map("".join))
def test_substitution_uses_only_names_found_by_analysis(text: str) -> None:
    used = names_in(expressions_in(text))
    for name in VALUES.keys() - used:
        others = {key: value for key, value in VALUES.items() if key != name}
        assert filled(text, VALUES) == filled(text, others)
    assert single_names(text) <= used


@pytest.mark.parametrize("line", ["!", "$HOME and {x", "{print $1}", "{}", "{1..5}", "a {} b {x}"])
def test_untouched_ipython_line_has_no_expressions(line: str) -> None:
    assert names_in(expressions_in(line)) - {"HOME"} == set()


def test_ipython_magics_taking_code_are_known() -> None:
    modules = [
        importlib.import_module(f"{core_magics.__name__}.{each.name}")
        for each in pkgutil.iter_modules(core_magics.__path__)
    ]
    found = [each for module in modules for each in vars(module).values()]
    classes = [each for each in found if getattr(each, "registered", False)]
    every = {
        name: getattr(each, called) if isinstance(called, str) else called
        for each in classes
        for kind in each.magics.values()
        for name, called in kind.items()
    }
    assert len(every) > 80
    python = {name for name, call in every.items() if getattr(call, MAGIC_NO_VAR_EXPAND_ATTR, 0)}
    assert python == magic_meanings.NOT_EXPANDED
    known = magic_meanings.LINE_MAGICS | magic_meanings.PYTHON_BODIES
    assert every.keys() - known == set()
