"""Calls of magics and of the shell, rewritten as the equivalent Python.

``!cp {a} $b`` reads ``a`` and ``b`` if these are defined. ``%time y = f()`` is ``y = f()``. So all
readers of a cell's tree see these names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from benchpool.cells import expressions, magic_meanings
from benchpool.cells.magic_meanings import MagicMeaning
from benchpool.cells.substitution import names_in

_WORDS = re.compile(r"\b(?:get_ipython|system|getoutput|run_line_magic|run_cell_magic)\b")
SHELL_CALLS = frozenset(["system", "getoutput", "system_raw", "system_piped"])
_MAGIC_CALLS = frozenset(["run_line_magic", "run_cell_magic"])
_SESSIONS = frozenset([("get_ipython", "()"), ("ip",), ("ipython",), ("shell",)])

ReadCode = Callable[[str], "ast.Module | None"]
"""Function that returns the tree of a cell's text, or None."""


@dataclass(frozen=True, slots=True)
class MagicCall:
    """Call of a magic with its name, line and body. A shell call has no name, only the command.

    ``exact``: all its strings are known as they reach IPython.
    """

    name: str | None
    line: str
    body: str | None
    node: ast.Call
    exact: bool = True

    @property
    def meaning(self) -> MagicMeaning:
        """Names that it uses and defines."""
        if self.name is None:
            return magic_meanings.of_shell(self.line)
        return magic_meanings.of_magic(self.name, self.line, self.body)


def written_out(source: str, tree: ast.Module, read_code: ReadCode) -> ast.Module:
    """Return the tree with magic and shell calls replaced by Python; it is changed in place.

    Args:
        source: The text that was parsed.
        tree: Its tree.
        read_code: Reads the Python in the line or the body of a magic.

    >>> text = "get_ipython().run_line_magic('time', 'y = f(x)')"
    >>> ast.unparse(written_out(text, ast.parse(text), ast.parse))
    'y = f(x)'
    """
    if _WORDS.search(source):
        _Writer(read_code).visit(tree)
    return tree


def calls_in(node: ast.AST) -> Iterator[MagicCall]:
    """Yield the calls of magics and of the shell in the expressions of a node."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and (found := magic_call(each)) is not None:
            yield found


def magic_call(node: ast.Call) -> MagicCall | None:
    """Return a call as a magic or shell call, or None."""
    function = node.func
    if not isinstance(function, ast.Attribute):
        return None
    if function.attr not in SHELL_CALLS | _MAGIC_CALLS:
        return None
    if expressions.chain_of(function.value) not in _SESSIONS:
        return None
    texts = [_text(each) for each in [*node.args, *[word.value for word in node.keywords]]]
    if function.attr in SHELL_CALLS:
        if texts[:1] == [None] or not texts:
            return _inexact(node)
        return MagicCall(None, texts[0] or "", None, node)
    if len(texts) < 2 or texts[0] is None:
        return None
    if None in texts:
        return _inexact(node)
    body = (texts[2] or "") if len(texts) > 2 and function.attr == "run_cell_magic" else None
    return MagicCall(texts[0], texts[1] or "", body, node)


def _inexact(node: ast.Call) -> MagicCall:
    """Return a command built at run time; the names in its strings may be substituted."""
    texts = [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    return MagicCall(None, " ".join(texts), None, node, exact=False)


def _text(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return None


def statements_of(meaning: MagicMeaning, line: int, local: Collection[str] = ()) -> list[ast.stmt]:
    """Return statements that read what a magic reads, at its place; not the code it runs.

    Expressions with ``local`` names are left out: a comprehension around the call binds them.
    """
    found: list[ast.stmt] = []
    for expression in meaning.perhaps:
        if local and not names_in([expression]).isdisjoint(local):
            continue
        text = f"try:\n ({expression.strip()})\nexcept NameError: pass"
        found += _parsed(text, line, ast.parse)
    for name in meaning.reads:
        found += _parsed(name, line, ast.parse)
    return found


def definitions_of(meaning: MagicMeaning, line: int) -> list[ast.stmt]:
    """Return statements that bind what a magic binds."""
    return [
        each for name in meaning.binds for each in _parsed(f"{name} = object()", line, ast.parse)
    ]


def around(
    name: str, meaning: MagicMeaning, line: int, body: list[ast.stmt], read_code: ReadCode
) -> list[ast.stmt]:
    """Return the statements of a cell whose magic runs ``body`` (``%%timeit setup``)."""
    code = [*_parsed(meaning.code, line, read_code), *body] if meaning.code else body
    return [
        *statements_of(meaning, line),
        *(timed(code, line) if name == "timeit" else code),
        *definitions_of(meaning, line),
    ]


def timed(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    """Return statements as ``%timeit`` runs them: inside a function, so that they bind no name."""
    made = _parsed("def __timed__(): pass\n__timed__()", line, ast.parse)
    if body and isinstance(made[0], ast.FunctionDef):
        made[0].body = body
        return made
    return []


def _parsed(text: str, line: int, read_code: ReadCode) -> list[ast.stmt]:
    """Return the statements of a text at a line; none if it is not Python."""
    try:
        tree = read_code(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    body = [] if tree is None else tree.body
    for node in (each for statement in body for each in ast.walk(statement)):
        if isinstance(node, ast.stmt | ast.expr | ast.excepthandler | ast.alias | ast.arg):
            node.lineno = node.end_lineno = line
    return body


class _Writer(ast.NodeTransformer):
    """Transformer that puts the equivalent statements around those that call magics."""

    def __init__(self, read_code: ReadCode) -> None:
        self._read_code = read_code

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        if isinstance(node, ast.expr):
            return node
        self.generic_visit(node)
        if not isinstance(node, ast.stmt):
            return node
        before: list[ast.stmt] = []
        after: list[ast.stmt] = []
        stands_for_itself = True
        for call in _called_by(node):
            meaning, line = call.meaning, call.node.lineno
            before += statements_of(meaning, line, _bound_inside(node))
            code = self._code(call, meaning, line)
            before += code
            after += definitions_of(meaning, line)
            is_statement = isinstance(node, ast.Expr) and node.value is call.node
            if code and is_statement:
                stands_for_itself = False
        return [*before, *([node] if stands_for_itself else []), *after]

    def _code(self, call: MagicCall, meaning: MagicMeaning, line: int) -> list[ast.stmt]:
        body = call.body if call.name in magic_meanings.PYTHON_BODIES else None
        texts = [meaning.code, *([body] if body is not None else [])]
        found = [each for text in texts if text for each in _parsed(text, line, self._read_code)]
        known = call.name in magic_meanings.PYTHON_BODIES or call.body is None
        if call.name == "timeit":
            return timed(found, line)
        return found if known else _perhaps(found, line)


def _perhaps(body: list[ast.stmt], line: int) -> list[ast.stmt]:
    """Return statements that may not run, and whose names may have another meaning."""
    made = _parsed("try: pass\nexcept NameError: pass", line, ast.parse)
    if not body or not isinstance(made[0], ast.Try):
        return []
    made[0].body = body
    return made


def _bound_inside(statement: ast.stmt) -> set[str]:
    """Return the names that comprehensions and lambdas in a statement bind."""
    targets = [each.target for each in ast.walk(statement) if isinstance(each, ast.comprehension)]
    names = {node.id for each in targets for node in ast.walk(each) if isinstance(node, ast.Name)}
    lambdas = [each.args for each in ast.walk(statement) if isinstance(each, ast.Lambda)]
    return names | {each.arg for args in lambdas for each in expressions.all_arguments(args)}


def _called_by(statement: ast.stmt) -> Iterator[MagicCall]:
    """Yield the calls in a statement itself, not those in the statements within it."""
    for _, value in ast.iter_fields(statement):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST) and not isinstance(
                each, ast.stmt | ast.excepthandler | ast.match_case
            ):
                yield from calls_in(each)
