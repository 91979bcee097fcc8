"""Trainings written with numbers and arrays: the changes of each turn are kept in a dict."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import expressions
from benchpool.resume_offers import bindings, carried_names
from benchpool.resume_offers.bindings import UNKNOWN

_GENERATORS = frozenset({"default_rng", "RandomState", "Random", "Generator"})
_LIBRARIES = frozenset({("np",), ("numpy",), ("torch",), ("math",)})
_NUMBERS = frozenset({"float", "int", "len", "sum", "min", "max", "abs", "round"})


@dataclass(frozen=True, slots=True)
class PlainLoop:
    """Loop that rebinds names which were bound before it.

    Attributes:
        changed: Those names: numbers, arrays, lists of them.
        carried: Objects carried as they are: lists and dicts that it fills, random generators.
    """

    loop: ast.For
    changed: tuple[str, ...]
    carried: tuple[str, ...]


def lines_for(trees: Sequence[ast.Module]) -> str:
    """Return the lines around the last such loop, rewritten.

    Empty if there is none, or if it changes objects that its text does not show.

    >>> code = "w = 0.0\\nfor step in range(9):\\n    w = w - 0.1 * step"
    >>> print(lines_for([ast.parse(code)]))
    from benchpool import checkpoint
    <BLANKLINE>
    kept = {"w": w}  # all values that one iteration passes to the next
    for step in checkpoint.loop(range(9), kept=kept):
        w = kept["w"]
        ...  # the loop's own lines
        kept.update(w=w)
    w = kept["w"]
    """
    found = find([statement for tree in trees for statement in tree.body], {})
    if found is None:
        return ""
    names, loop = found.changed, found.loop
    kept = _unused("kept", trees)
    carries = "".join(f", {name}={name}" for name in (kept, *found.carried))
    items = ", ".join(f'"{name}": {name}' for name in names)
    taken = ", ".join(f'{kept}["{name}"]' for name in names)
    back = f"{', '.join(names)} = {taken}"
    lines = (
        "from benchpool import checkpoint",
        "",
        f"{kept} = {{{items}}}  # all values that one iteration passes to the next",
        f"for {_target(loop.target)} in checkpoint.loop({ast.unparse(loop.iter)}{carries}):",
        f"    {back}",
        "    ...  # the loop's own lines",
        f"    {kept}.update({', '.join(f'{name}={name}' for name in names)})",
        back,
    )
    return "\n".join(lines)


def find(statements: Sequence[ast.stmt], around: Mapping[str, ast.expr]) -> PlainLoop | None:
    """Return the last loop that is known to change only numbers and arrays, or None.

    Args:
        around: Values of the names in the surrounding code.
    """
    found = None
    values = dict(around)
    for statement in statements:
        match statement:
            case ast.For(orelse=[]):
                found = _read(statement, values) or found
            case ast.FunctionDef(args=given, body=body):
                own = {each.arg: UNKNOWN for each in ast.walk(given) if isinstance(each, ast.arg)}
                found = find(body, {**values, **own}) or found
            case ast.If(body=body) | ast.With(body=body):
                found = find(body, {**values, **dict(bindings.bound([statement]))}) or found
        values.update(bindings.bound([statement]))
    return found


def _read(loop: ast.For, values: Mapping[str, ast.expr]) -> PlainLoop | None:
    stored = set(bindings.stored(loop))
    changed = [name for name in values if name in stored & bindings.needed(loop)]
    filled = [name for name in carried_names.put_into(loop) if name in values]
    others = {name for name in bindings.called(loop) if name in values} - {*filled, *changed}
    drawn = [name for name in values if name in others and _is_generator(values[name])]
    unknown = [
        *(name for name in changed if not _is_plain(values[name])),
        *(name for name in filled if not _is_container(values[name])),
        *(name for name in others - {*drawn} if not _is_plain(values[name])),
    ]
    if not changed or unknown or bindings.may_skip_lines(loop) or bindings.sets_attributes(loop):
        return None
    handed = [name for name in values if name in others - {*drawn}]
    kept = tuple(dict.fromkeys([*changed, *handed]))
    carried = dict.fromkeys([*(name for name in filled if name not in kept), *drawn])
    return PlainLoop(loop, kept, tuple(carried))


def _is_plain(value: ast.expr) -> bool:
    """Return whether a value is visibly a number, a string, an array, or a list of these."""
    match value:
        case ast.Constant(value=bool() | int() | float() | str() | None):
            return True
        case ast.UnaryOp(operand=inside) | ast.ListComp(elt=inside):
            return _is_plain(inside)
        case ast.BinOp(left=left, right=right):
            return _is_plain(left) and _is_plain(right)
        case ast.List(elts=inside) | ast.Tuple(elts=inside):
            return all(_is_plain(each) for each in inside)
        case ast.Dict(keys=keys, values=inside):
            return all(isinstance(key, ast.Constant) for key in keys) and all(
                map(_is_plain, inside)
            )
    chain = expressions.chain_of(value)
    if isinstance(value, ast.Call) and len(chain) == 2:
        return chain[0] in _NUMBERS
    return chain[:1] in _LIBRARIES and not _GENERATORS & set(chain)


def _is_container(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Dict | ast.Set)


def _is_generator(value: ast.expr) -> bool:
    chain = expressions.chain_of(value.func) if isinstance(value, ast.Call) else ()
    return bool(chain) and chain[-1] in _GENERATORS


def _unused(name: str, trees: Sequence[ast.Module]) -> str:
    """Return a name that the code does not use."""
    taken = {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}
    while name in taken:
        name += "_"
    return name


def _target(target: ast.expr) -> str:
    text = ast.unparse(target)
    return text[1:-1] if isinstance(target, ast.Tuple) else text
