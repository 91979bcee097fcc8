"""Calls with a hidden meaning: strings that are code, names given as strings, line magics."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from benchpool.cells import expressions, facts, left_out
from benchpool.cells.def_use import Called

if TYPE_CHECKING:
    from benchpool.cells.scope_reader import ScopeReader

_SHELL_NAMES = frozenset(["get_ipython", "ip", "ipython", "shell"])
_LOCAL_NAME = re.compile(r"@([A-Za-z_]\w*)")
_NAME = re.compile(r"\b[A-Za-z_]\w*")
_FILLS_NAMES = frozenset((name, "()", "update") for name in ("globals", "locals", "vars"))
_NAMES_BY_TEXT = frozenset([("globals",), ("locals",), ("vars",)])


def note(reader: ScopeReader, node: ast.Call, called: Called) -> None:
    """Note what a special call defines, uses, sets or asks for."""
    chain, made = called.chain, reader.made
    if chain in {("input",), ("getpass",), ("getpass", "getpass")}:
        made.asks = node.lineno
    if chain == ("exec",):
        _code(reader, node)
    elif chain == ("eval",) or (chain[-1:] == ("eval",) and chain[0] in {"pd", "pandas", "ne"}):
        _expression(reader, node, columns=chain != ("eval",))
    elif chain[-1] in {"query", "eval"} and node.args:
        _local_names(reader, node)
    elif chain in _FILLS_NAMES:
        made.defines_unknown = made.defines_unknown or f"{chain[-3]}().update()"
    elif chain in _NAMES_BY_TEXT and not node.args:
        made.uses_unknown = made.uses_unknown or f"{chain[0]}()"
    if chain[-1] == "push" and chain[0] in _SHELL_NAMES:
        _pushed(reader, node)
    if chain[-1] in facts.FORMULAS:
        _formula(reader, node)
    if chain == ("get_ipython", "()", "run_line_magic"):
        _line_magic(reader, node)


def named_by_text(reader: ScopeReader, node: ast.Subscript) -> None:
    """Treat ``globals()["x"]`` as the name ``x``, and no longer as any name."""
    function, key = node.value, node.slice
    text = _text(key)
    if text is not None and text.isidentifier() and _is_names_of_shell(function):
        reader.visit(ast.copy_location(ast.Name(text, node.ctx), node))
        return
    if not isinstance(function, ast.Call) or function.args:
        return
    if expressions.chain_of(function.func) not in {("globals",), ("vars",), ("locals",)}:
        return
    if isinstance(key, ast.Constant) and isinstance(key.value, str):
        name = ast.copy_location(ast.Name(key.value, node.ctx), node)
        reader.visit(name)
        if not isinstance(node.ctx, ast.Load) and expressions.root_of(function) == "globals":
            reader.made.set_by_text.add(key.value)
        known = reader.made.uses_unknown
        reader.visit(function)
        reader.made.uses_unknown = known
    elif not isinstance(node.ctx, ast.Load):
        reader.made.defines_unknown = "globals()"


def _pushed(reader: ScopeReader, node: ast.Call) -> None:
    """Note that ``get_ipython().push({"x": 1})`` binds names of the notebook."""
    given = node.args[0] if node.args else None
    keys = [_text(each) for each in given.keys] if isinstance(given, ast.Dict) else [None]
    for key in keys:
        if key is None:
            reader.made.defines_unknown = reader.made.defines_unknown or "push()"
        else:
            reader.bind(key)


def _is_names_of_shell(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "user_ns"


def _text(node: ast.expr | None) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def _code(reader: ScopeReader, node: ast.Call) -> None:
    text = _text(node.args[0]) if node.args else None
    if text is None or not expressions.parses(text):
        reader.made.defines_unknown = "exec()"
        return
    reader.certain = reader.block(ast.parse(text).body, reader.certain)
    reader.made.may_define |= reader.certain


def _expression(reader: ScopeReader, node: ast.Call, *, columns: bool) -> None:
    text = _text(node.args[0]) if node.args else None
    if text is None or not expressions.parses(text.strip()):
        reader.made.uses_unknown = "eval()"
        return
    inner = ast.parse(text.strip(), mode="exec")
    around, reader.doubtful = reader.doubtful, reader.doubtful or columns  # columns, perhaps
    reader.certain = reader.block(inner.body, reader.certain)
    reader.doubtful = around


def _local_names(reader: ScopeReader, node: ast.Call) -> None:
    texts = [
        each.value
        for each in ast.walk(node.args[0])
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    for name in _LOCAL_NAME.findall(" ".join(texts)):
        reader.visit(ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0))
    if not texts or not isinstance(node.args[0], ast.Constant | ast.JoinedStr):
        reader.made.uses_unknown = (
            reader.made.uses_unknown or f"{node.func.attr}()"
            if (isinstance(node.func, ast.Attribute))
            else None
        )


def _formula(reader: ScopeReader, node: ast.Call) -> None:
    """Note the names in ``ols("y ~ f(x)", df)``: columns of the frame, or names of the notebook."""
    words = [each.value for each in node.keywords if each.arg in {"formula", "formula_like"}]
    text = _text((*node.args[:1], *words, None)[0])
    if text is None or "~" not in text:
        return
    names = set(_NAME.findall(re.sub(r"\.\s*\w+", "", text)))
    around, reader.doubtful = reader.doubtful, True
    for name in sorted(names):
        reader.visit(ast.Name(name, ast.Load(), lineno=node.lineno, col_offset=0))
    reader.doubtful = around


def _line_magic(reader: ScopeReader, node: ast.Call) -> None:
    """Note what a line magic sets, or defines without a name. Its names are already written out."""
    made = reader.made
    words = [each.value for each in node.args if isinstance(each, ast.Constant)]
    name, line = (str(words[0]), str(words[-1])) if len(words) > 1 else ("", "")
    given = line.split()
    restores_all = name == "store" and "-r" in given and len(given) == 1
    loads = name in {"load_ext", "reload_ext"} and line not in left_out.SCREEN_EXTENSIONS
    if name in {"run", "pylab"} or restores_all or loads:
        made.defines_unknown = f"%{name} {line}".strip()
        made.ambient.setdefault(f"%{name} {line}".strip(), node.lineno)
        if name == "run" and "-i" in given:
            made.uses_unknown = made.uses_unknown or "%run -i"
    elif name in {"cd", "env", "set_env", "pushd", "popd", "precision"}:
        made.ambient.setdefault(f"%{name}", node.lineno)
