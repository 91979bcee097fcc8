"""Objects that a training changes step by step, by their names in its code."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from benchpool.cells import expressions
from benchpool.resume_offers.training_loops import TrainingLoop, calls_in, method_of

_STEPS = frozenset({"step", "zero_grad"})
_PARAMETERS = frozenset({"parameters", "named_parameters"})
_GATHERS = frozenset({"append", "extend", "add", "update"})
_EMPTY = frozenset({"list", "dict", "set", "deque", "defaultdict", "Counter"})


def changed(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names of models, then of optimizers, schedules and scalers."""
    calls = [call for statement in statements for call in calls_in(statement)]
    for methods in (_PARAMETERS, _STEPS):
        for call in calls:
            if method_of(call) in methods:
                chain = expressions.chain_of(call.func)
                if len(chain) > 1 and not {"()", "[]"} & set(chain):
                    yield ".".join(chain[:-1])


def gathered(loop: TrainingLoop) -> Iterator[str]:
    """Yield the lists, dicts and sets made before the loop to which it adds items."""
    made = {name for name, value in _bound(loop.before) if _is_empty(value)}
    for name in put_into(loop.around, items=True):
        if name in made:
            yield name


def put_into(loop: ast.For, *, items: bool = False) -> Iterator[str]:
    """Yield names to which a loop adds items by a method, with ``items`` also by an index."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Call) and method_of(node) in _GATHERS:
            chain = expressions.chain_of(node.func)
            if len(chain) == 2:
                yield chain[0]
        elif (
            items
            and isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
        ):
            yield node.value.id


def numbers(loop: TrainingLoop) -> list[str]:
    """Return the numbers set before the loop that it changes; they are not carried."""
    known = {name for name, value in _bound(loop.before) if _is_number(value)}
    stored = {
        node.id
        for node in ast.walk(loop.around)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    return sorted(known & stored)


def _bound(statements: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in statements:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))


def _is_empty(value: ast.expr) -> bool:
    if isinstance(value, ast.List | ast.Dict | ast.Set):
        return True
    made_by = expressions.chain_of(value.func)[-1:] if isinstance(value, ast.Call) else ()
    return bool(made_by) and made_by[0] in _EMPTY


def _is_number(value: ast.expr) -> bool:
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float)
    chain = expressions.chain_of(value)
    return chain in {("float", "()"), ("math", "inf"), ("np", "inf"), ("torch", "inf")}
