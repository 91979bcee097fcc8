"""Values of expressions: the names that a value is, is a part of, or keeps."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from benchpool.cells import facts, protocols
from benchpool.cells.def_use import Called, CellValue, Chain
from benchpool.cells.expressions import chain_of

_DATA = CellValue(literal="data")
_FIXED = CellValue(literal="data", is_fixed=True)
_FALSE = CellValue(literal="data", is_false=True, is_fixed=True)
_PLAIN = frozenset(["shape", "dtype", "ndim", "device", "__name__", "__class__"])
_NUMBERS = frozenset(["len", "int", "float", "str", "bool", "repr", "ord", "chr", "hash", "id"])
_LISTS = frozenset(["list", "sorted", "tuple"])


class Values:
    """Reads the values of one scope. Names of comprehensions stand for the elements they take.

    Args:
        owner: The name of the instance in a method: ``self.x`` counts as a separate name.
    """

    def __init__(self, owner: str | None = None) -> None:
        self.owner = owner
        self.put_back: tuple[str, ...] = ()
        """Libraries whose settings a surrounding ``with`` restores at its end."""

        self._calls: dict[int, Called] = {}
        self._hidden: list[Mapping[str, CellValue]] = []

    def chain(self, node: ast.expr) -> Chain:
        """Return the dotted name, with ``self.x`` as one word."""
        return chain_of(node, self.owner)

    def of(self, node: ast.expr) -> CellValue:
        """Return the possible values of an expression."""
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Call):
            called = self.called(node)
            is_fixed = len(called.chain) == 1 and called.chain[0] in _NUMBERS
            return CellValue(calls=(called,), mentioned=_mentioned(called), is_fixed=is_fixed)
        if isinstance(node, ast.Attribute | ast.Subscript):
            return self._part(node)
        if isinstance(node, ast.Constant):
            return _FALSE if node.value is False or node.value is None else _FIXED
        if isinstance(node, ast.JoinedStr | ast.Compare):
            return _FIXED if isinstance(node, ast.JoinedStr) else _DATA
        if isinstance(node, ast.Lambda):
            return CellValue(inside=frozenset([lambda_name(node)]))
        return self._compound(node)

    def _taken(self, name: str) -> CellValue | None:
        """Return the value of a comprehension's name if it is taken from a name, else None."""
        found = next((each[name] for each in reversed(self._hidden) if name in each), None)
        return found if found is not None and found.mentioned else None

    def _name(self, name: str) -> CellValue:
        for names in reversed(self._hidden):
            if name in names:
                return names[name]
        return CellValue(same=frozenset([name]), mentioned=frozenset([name]))

    def _part(self, node: ast.Attribute | ast.Subscript) -> CellValue:
        if isinstance(node, ast.Attribute):
            chain = self.chain(node)
            if len(chain) == 1:
                return self._name(chain[0])
            if node.attr in _PLAIN:
                return _FIXED
        whole = self.of(node.value)
        if isinstance(node, ast.Attribute):
            bound = node.attr if node.attr in facts.CHANGING_METHODS else None
            return element(whole, bound, frozenset([node.attr]))
        return element(whole)

    def _compound(self, node: ast.expr) -> CellValue:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            found = kept([self.of(each) for each in node.elts])
            return replace(found, is_fixed=found.holds_fixed and isinstance(node, ast.Tuple))
        if isinstance(node, ast.Dict):
            return kept([self.of(each) for each in [*node.keys, *node.values] if each is not None])
        if isinstance(node, ast.IfExp):
            return joined([self.of(node.body), self.of(node.orelse)])
        if isinstance(node, ast.BoolOp):
            return joined([self.of(each) for each in node.values])
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.UnaryOp):
            inside = self.of(node.operand)
            return CellValue(mentioned=inside.mentioned, literal="data", is_fixed=inside.is_fixed)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._comprehension(node)
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Starred | ast.FormattedValue):
            return self.of(node.value)
        if isinstance(node, ast.Yield | ast.YieldFrom) and node.value is not None:
            return self.of(node.value)
        return CellValue()

    def _arithmetic(self, node: ast.BinOp) -> CellValue:
        sides = [self.of(node.left), self.of(node.right)]
        if isinstance(node.op, ast.Add | ast.Mult) and any(map(_is_list, (node.left, node.right))):
            return kept(sides)
        mentioned = frozenset[str]().union(*[each.mentioned for each in sides])
        method = protocols.operator(node)
        is_fixed = all(each.is_fixed for each in sides)
        return CellValue(mentioned=mentioned, literal="data", operator=method, is_fixed=is_fixed)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> CellValue:
        for generator in node.generators:
            self.enter(generator)
        made = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        value = kept([self.of(each) for each in made])
        for _ in node.generators:
            self.leave()
        if isinstance(node, ast.GeneratorExp):
            late = self.of(node.generators[0].iter)
            value = joined([value, kept([late])])
            return CellValue(value.same, value.part, value.inside, value.calls, value.part_of_calls,
                         value.mentioned, "iterator")  # fmt: skip
        return value

    def enter(self, generator: ast.comprehension) -> None:
        """Bind the targets of a comprehension to the elements that they take."""
        taken = element(self.of(generator.iter))
        names = [each.id for each in ast.walk(generator.target) if isinstance(each, ast.Name)]
        self._hidden.append(dict.fromkeys(names, taken))

    def leave(self) -> None:
        """Unbind the targets of the last comprehension that was entered."""
        self._hidden.pop()

    def called(
        self,
        node: ast.Call,
        *,
        alone: bool = False,
        for_a_while: bool = False,
        shown: bool = False,
    ) -> Called:
        """Return a call as data."""
        found = self._calls.get(id(node))
        if found is None:
            function = node.func
            chain = self.chain(function)
            receiver = None
            if isinstance(function, ast.Attribute) and len(chain) != 1:
                receiver = self.of(function.value)
                chain = chain or ("", function.attr)
            elif isinstance(function, ast.Call | ast.Subscript) and chain:
                receiver = self.of(function)
            elif isinstance(function, ast.Name) and (taken := self._taken(function.id)) is not None:
                receiver = taken  # ``[f(x) for f in found]`` calls ``found[…](x)``
                chain = (*sorted(taken.mentioned)[:1], "[]")
            found = Called(
                chain,
                receiver,
                tuple(self.of(each) for each in node.args),
                tuple((each.arg, self.of(each.value)) for each in node.keywords),
                node.lineno,
                alone,
                for_a_while,
                self.put_back,
                shown,
            )
            self._calls[id(node)] = found
        return found


def lambda_name(node: ast.Lambda) -> str:
    """Return the name under which a lambda's summary is kept."""
    return f"<lambda {id(node)}>"


def element(
    whole: CellValue, bound: str | None = None, attributes: frozenset[str] = frozenset()
) -> CellValue:
    """Return the value of an element, an attribute or a view of a value."""
    return CellValue(
        same=whole.items if bound is None and not attributes else frozenset(),
        part=whole.same | whole.part | whole.inside,
        part_of_calls=(*whole.calls, *whole.part_of_calls),
        mentioned=whole.mentioned,
        literal="data" if whole.literal == "data" else None,
        bound=bound,
        attributes=attributes or whole.attributes,
        is_fixed=whole.is_fixed or (whole.holds_fixed and not attributes),
    )


def kept(values: list[CellValue]) -> CellValue:
    """Return the value of a display that keeps values."""
    whole = joined(values)
    return CellValue(
        inside=whole.same | whole.part | whole.inside,
        calls=whole.calls,
        part_of_calls=whole.part_of_calls,
        mentioned=whole.mentioned,
        literal="container",
        attributes=whole.attributes,
        items=whole.same | whole.items,
        holds_fixed=all(each.is_fixed for each in values),
    )


def joined(values: list[CellValue]) -> CellValue:
    """Return the value that may be any of several values."""
    literals = {each.literal for each in values}
    nothing = frozenset[str]()
    return CellValue(
        nothing.union(*[each.same for each in values]),
        nothing.union(*[each.part for each in values]),
        nothing.union(*[each.inside for each in values]),
        tuple(call for each in values for call in each.calls),
        tuple(call for each in values for call in each.part_of_calls),
        nothing.union(*[each.mentioned for each in values]),
        literals.pop() if len(literals) == 1 else None,
        attributes=nothing.union(*[each.attributes for each in values]),
        is_fixed=bool(values) and all(each.is_fixed for each in values),
    )


def _mentioned(called: Called) -> frozenset[str]:
    receiver = called.receiver.mentioned if called.receiver is not None else frozenset[str]()
    own = frozenset(called.chain[:1]) - {""}
    return receiver.union(own, *[each.mentioned for each in called.given])


def _is_list(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.ListComp):
        return True
    if isinstance(node, ast.BinOp):
        return _is_list(node.left) or _is_list(node.right)
    if not isinstance(node, ast.Call):
        return False
    chain = chain_of(node.func)
    return bool(chain) and (chain[0] in _LISTS or chain[-1] == "parameters")
