"""Classes and decorated functions: the names they bind, and the calls made by defining them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from benchpool.cells import expressions, function_reader
from benchpool.cells.alias_graph import Change
from benchpool.cells.def_use import INSTANCES, Alias, Called, CellValue, ClassSummary

if TYPE_CHECKING:
    from benchpool.cells.scope_reader import ScopeReader

_KEPT = frozenset(["cached_property", "lazy_property"])
Decorated = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_OF_METACLASS = ("__init_subclass__", "__prepare__", "__new__", "__init__")
_PROPERTIES = frozenset(["property", "cached_property", "lazy_property"])


def class_made(reader: ScopeReader, node: ast.ClassDef, inner: ScopeReader) -> None:
    """Note a class, its methods and the calls made by its definition: base hooks, a metaclass."""
    for name, line in inner.made.uses.items():
        reader.need(name, line, doubtful=name in inner.made.forgiven)
    functions = reader.made.functions
    functions.setdefault(node.name, [])
    for name, methods in inner.made.functions.items():
        for method in methods:
            method.owner = method.owner or node.name
        functions.setdefault(node.name, []).extend(methods)
        functions.setdefault(f".{name}", []).extend(methods)
    shared = {
        each.target
        for each in inner.made.aliases
        if each.value.literal == "container" or each.value.calls
    }
    metaclasses = [each.value for each in node.keywords if each.arg == "metaclass"]
    metaclass = next(filter(None, map(expressions.root_of, metaclasses)), None)
    bases = tuple(chain for each in node.bases if (chain := reader.values.chain(each)))
    only_fixed = not inner.made.functions and all(a.value.is_fixed for a in inner.made.aliases)
    summary = ClassSummary(bases, frozenset(shared), metaclass, only_fixed, _held(inner))
    reader.made.classes[node.name] = summary
    reader.made.defines_unknown = reader.made.defines_unknown or inner.made.defines_unknown
    reader.bind(node.name)
    made = CellValue(same=frozenset([node.name]))
    _body_ran(reader, inner, made)
    for base in [*node.bases, *metaclasses]:
        chain = reader.values.chain(base)
        if len(chain) == 1:
            for hook in _OF_METACLASS if base in metaclasses else ("__init_subclass__",):
                called = Called((chain[0], hook), reader.values.of(base), (made,), (), 0)
                reader.made.calls.append(called)
    decorated(reader, node)


def _body_ran(reader: ScopeReader, inner: ScopeReader, made: CellValue) -> None:
    """Note what the statements in a class's body do, and that its descriptors learn their names."""
    mine = inner.made.possible_definitions
    reader.made.calls += [each for each in inner.made.calls if each.chain[0] not in mine]
    reader.made.iterated += inner.made.iterated
    for name, how in inner.made.changes.items():
        if name not in mine:
            reader.made.changes[name] = max(how, reader.made.changes.get(name, how))
    for call in [call for alias in inner.made.aliases for call in alias.value.calls]:
        if len(call.chain) == 1:
            on = CellValue(same=frozenset(call.chain))
            named = Called((call.chain[0], "__set_name__"), on, (made,), (), call.line)
            reader.made.calls.append(named)


def _held(inner: ScopeReader) -> frozenset[str]:
    """Return the names of the notebook that fields of a class are made of (``tags = pool``)."""
    values = [each.value for each in inner.made.aliases if not each.value.is_fixed]
    given = [value for each in values for call in each.calls for value in call.given]
    functions = [
        one for v in given for word in v.inside for one in inner.made.functions.get(word, ())
    ]
    names = {name for each in values for name in each.same | each.inside}
    names |= {name for each in functions for name in each.uses}
    return frozenset(names & inner.made.uses.keys())


def added_to(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """Return the class to which a decorator adds a function as a method (``@add_to_class(A)``).

    The function's first parameter is ``self``, or the decorator has a name such as ``patch``. The
    class is the decorator's argument, or the annotation of that parameter.
    """
    first = next(iter(expressions.all_arguments(node.args)), None)
    words = [word for each in node.decorator_list for word in expressions.chain_of(each)]
    patches = any(part in word for word in words for part in ("patch", "add_to", "add_method"))
    if first is None or (first.arg not in INSTANCES and not patches):
        return None
    for each in node.decorator_list:
        if (
            isinstance(each, ast.Call)
            and len(each.args) == 1
            and isinstance(each.args[0], ast.Name)
        ):
            return each.args[0].id
        if isinstance(first.annotation, ast.Name):
            return first.annotation.id
    return None


def decorated(reader: ScopeReader, node: Decorated) -> None:
    """Note that a decorator is called with the decorated object and its annotations' classes."""
    first: list[ast.expr] = []
    if not isinstance(node, ast.ClassDef):
        every = expressions.all_arguments(node.args)
        first = [each.annotation for each in every[:1] if each.annotation is not None]
    roots = filter(None, map(expressions.root_of, first))
    made = CellValue(same=frozenset([node.name, *roots]))
    summaries = reader.made.functions.get(node.name, [])[-1:]
    for decorator in node.decorator_list:
        called = isinstance(decorator, ast.Call)
        function = decorator.func if isinstance(decorator, ast.Call) else decorator
        chain = reader.values.chain(function)
        if not chain:
            continue
        on = reader.values.of(function.value) if isinstance(function, ast.Attribute) else None
        chain_called = (*chain, "()") if called else chain
        reader.made.calls.append(
            Called(chain_called, on, (made,), (), node.lineno, alone=True, shown=True)
        )
        if isinstance(node, ast.ClassDef):
            continue
        for each in summaries:
            each.is_property = each.is_property or chain[-1] in _PROPERTIES
            if chain[-1] in _KEPT and each.instance is not None:
                each.changes[f"{each.instance}.{node.name}"] = Change.ITEM
            each.decorators = (*each.decorators, chain)


def defaults(reader: ScopeReader, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Note that a function keeps the default values of its parameters."""
    every = [*node.args.defaults, *[each for each in node.args.kw_defaults if each is not None]]
    for value in every:
        held = reader.values.of(value)
        if held.same:
            kept = CellValue(inside=held.same)
            reader.made.aliases.append(Alias(node.name, kept, is_kept=True))


def function_bound(reader: ScopeReader, target: ast.expr, value: ast.expr) -> None:
    """Note a lambda that is bound to a name, or kept by an object."""
    if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
        reader.note(target.id, function_reader.summary(value))
    elif isinstance(value, ast.Lambda) and reader.owner is None:
        root = expressions.root_of(target)
        if root is not None:
            reader.made.aliases.append(Alias(root, reader.values.of(value), is_kept=True))


def discards(node: ast.Assign) -> bool:
    """Return whether an assignment throws its value away (``_ = boot()``)."""
    return all(isinstance(each, ast.Name) and set(each.id) == {"_"} for each in node.targets)


def renamed(reader: ScopeReader, target: ast.expr, value: ast.expr) -> None:
    """Note ``rand = np.random.rand``: the target may be a library function under another name."""
    if isinstance(target, ast.Name) and isinstance(value, ast.Attribute):
        chain = reader.values.chain(value)
        if len(chain) > 1 and not {"()", "[]"} & {*chain}:
            reader.made.renames[target.id] = chain
