"""Names that one cell uses from earlier cells, defines for later cells, or may change in place.

Statements are read in order, so a name that the cell itself has bound is not needed from elsewhere.
Branches bind their names only perhaps. Bodies of functions need their names when they are called,
not where they are defined. What cannot be known is assumed to happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from benchpool.cells import definitions, expressions, function_reader, setting_facts, special_calls
from benchpool.cells.alias_graph import Change
from benchpool.cells.def_use import Alias, Called, CellValue, DefUse, FunctionSummary
from benchpool.cells.values import Values, element, lambda_name


def def_use_of(tree: ast.Module) -> DefUse:
    """Return what a cell uses and defines."""
    reader = ScopeReader(DefUse())
    reader.last = tree.body[-1] if tree.body else None
    certain = reader.block(tree.body, set())
    reader.made.defines |= certain
    reader.made.may_define -= certain
    reader.made.body = tree.body
    return reader.made


class ScopeReader(ast.NodeVisitor):
    """Visitor that reads one scope in order. ``self.certain`` holds the names bound so far."""

    def __init__(self, made: DefUse, owner: str | None = None, *, in_class: bool = False) -> None:
        self.made = made
        self.values = Values(owner)
        self.certain: set[str] = set()
        self.hidden: list[set[str]] = []  # names of the surrounding comprehensions
        self.owner = owner
        self.in_class = in_class
        self.last: ast.stmt | None = None  # the last statement of a cell, whose value is shown
        self.doubtful = False  # names that are read now may be missing

    # ---------------------------------------------------------------- order and branches

    def block(self, body: Sequence[ast.stmt], certain: set[str]) -> set[str]:
        """Read statements that begin with ``certain`` bound; return what is bound after them."""
        before, self.certain = self.certain, set(certain)
        for statement in body:
            self.visit(statement)
        after, self.certain = self.certain, before
        return after

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        branches = [(node.body, self.certain), (node.orelse, self.certain)]
        self._join(branches)

    def visit_While(self, node: ast.While) -> None:
        self.visit(node.test)
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        if endless:
            self.certain = self.block(node.body, self.certain)
        else:
            self._join([(node.body, self.certain), (node.orelse, self.certain)])

    def visit_For(self, node: ast.For | ast.AsyncFor) -> None:
        # A loop is assumed to run at least once: else each `loss` after it would need older cells.
        self.visit(node.iter)
        self.made.iterated.append(self.values.of(node.iter))
        self._alias(node.target, node.iter, is_element=True)
        self.visit(node.target)
        self.certain = self.block(node.body, self.certain)
        self.block(node.orelse, self.certain)

    visit_AsyncFor = visit_For

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        caught = {expressions.root_of(each.type) for each in node.handlers if each.type is not None}
        around, self.doubtful = self.doubtful, self.doubtful or "NameError" in caught
        after_body = self.block([*node.body, *node.orelse], self.certain)
        self.doubtful = around
        ends = [after_body]
        for handler in node.handlers:
            if handler.type is not None:
                self.visit(handler.type)
            bound = self.certain | ({handler.name} if handler.name else set())
            after = self.block(handler.body, bound)
            if not expressions.leaves(handler.body):
                ends.append(after)
        self.certain = set.intersection(*ends)
        self.certain = self.block(node.finalbody, self.certain)

    visit_TryStar = visit_Try

    def visit_Match(self, node: ast.Match) -> None:
        self.visit(node.subject)
        for case in node.cases:
            bound = expressions.pattern_names(case.pattern)
            self.made.may_define |= bound
            part = element(self.values.of(node.subject))
            self.made.aliases += [Alias(name, part, is_element=True) for name in sorted(bound)]
            if case.guard is not None:
                self.visit(case.guard)
            self.block(case.body, self.certain | bound)

    def _join(self, branches: Iterable[tuple[Sequence[ast.stmt], set[str]]]) -> None:
        ends = [
            after
            for body, before in branches
            for after in [self.block(body, before)]
            if not expressions.leaves(body)
        ]
        self.certain = set.intersection(*ends) if ends else self.certain

    # ---------------------------------------------------------------- names

    def visit_Constant(self, node: ast.Constant) -> None:
        """Do nothing: a constant needs no names, and the inherited method is slow."""

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.made.bound_at.setdefault(node.id, frozenset(self.certain))
            self.need(node.id, node.lineno)
        elif isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        else:
            self.need(node.id, node.lineno)
            self.made.deletes.add(node.id)
            self.certain.discard(node.id)

    def need(self, name: str, line: int, *, doubtful: bool = False) -> None:
        if name in self.certain or any(name in names for names in self.hidden):
            return
        if not (self.doubtful or doubtful):
            self.made.forgiven.discard(name)
        elif name not in self.made.uses:
            self.made.forgiven.add(name)
        self.made.uses.setdefault(name, line)

    def bind(self, name: str) -> None:
        if self.hidden and name in self.hidden[-1]:
            return
        self.certain.add(name)
        self.made.may_define.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        if isinstance(node.value, ast.Call):
            self.values.called(node.value, alone=definitions.discards(node))
        self.visit(node.value)
        for target in node.targets:
            self._alias(target, node.value)
            definitions.renamed(self, target, node.value)
            definitions.function_bound(self, target, node.value)
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._alias(node.target, node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        chain = self.values.chain(node.target)
        if chain:
            if "." not in chain[0]:
                self.need(chain[0], node.lineno)
            self._change(chain[0], Change.SHALLOW if len(chain) == 1 else Change.DEEP)
            if len(chain) == 1:
                self.made.aliases.append(Alias(chain[0], CellValue(same=frozenset(chain))))
                added = self.values.of(node.value)
                if not added.is_fixed:
                    sum_ = CellValue(mentioned=added.mentioned, literal="data")
                    self.made.aliases.append(Alias(chain[0], sum_))
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._alias(node.target, node.value)
        self.certain.add(node.target.id)  # it leaks out of comprehensions
        self.made.may_define.add(node.target.id)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        before = self.values.put_back
        for item in node.items:
            if isinstance(item.context_expr, ast.Call):
                entered = self.values.called(item.context_expr, for_a_while=True)
                library = setting_facts.puts_back(entered.chain)
                self.values.put_back += (library,) if library else ()
            self.visit(item.context_expr)
            self._entered(item.context_expr)
            if item.optional_vars is not None:
                self._alias(item.optional_vars, item.context_expr)
                self.visit(item.optional_vars)
        self.certain = self.block(node.body, self.certain)
        self.values.put_back = before

    visit_AsyncWith = visit_With

    def _entered(self, manager: ast.expr) -> None:
        chain, value = self.values.chain(manager), self.values.of(manager)
        for name in ("__enter__", "__exit__") if chain else ():
            self.made.calls.append(Called((*chain, name), value, (), (), manager.lineno))

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            name = each.asname or each.name.split(".")[0]
            self.made.imports[name] = each.name if each.asname else name
            self.bind(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or "."
        for each in node.names:
            if each.name == "*":
                self.made.defines_unknown = f"from {module} import *"
                self.made.star = module
                continue
            if setting_facts.import_sets(each.name):
                self.made.ambient.setdefault(each.name, node.lineno)
            name = each.asname or each.name
            self.made.imports[name] = f"{module}.{each.name}"
            self.bind(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._stored(node)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._stored(node)
        special_calls.named_by_text(self, node)
        if isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            self.made.indexed.add(node.value.id)
        self.visit(node.value)
        self.visit(node.slice)

    def _stored(self, node: ast.Attribute | ast.Subscript) -> None:
        """Note that ``a.b = c`` and ``a[b] = c`` change ``a``."""
        chain = self.values.chain(node)
        if not chain or isinstance(node.ctx, ast.Load):
            return
        if len(chain) == 1:  # ``self.x = c``
            self._change(chain[0].partition(".")[0], Change.ITEM)
            return
        by_name = isinstance(node, ast.Attribute) or isinstance(
            getattr(node.slice, "value", None), str
        )
        if len(chain) > 2:
            is_plain = {"()", "[]"}.isdisjoint(chain)
            self._change(chain[0], Change.THROUGH if is_plain else Change.DEEP)
        else:
            self._change(chain[0], Change.ITEM if by_name else Change.SHALLOW)

    def _change(self, name: str, how: Change) -> None:
        self.made.changes[name] = max(how, self.made.changes.get(name, how))

    # ---------------------------------------------------------------- calls

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.values.called(node.value, alone=True, shown=node is self.last)
        self.visit(node.value)

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        called = self.values.called(node)
        for each in called.given:
            if each.bound is not None:  # a changing method is passed on to be called
                for name in each.part:
                    self._change(name, Change.DEEP)
        if called.chain:
            self.made.calls.append(called)
            special_calls.note(self, node, called)

    def visit_Starred(self, node: ast.Starred) -> None:
        if isinstance(node.ctx, ast.Load):
            self.made.iterated.append(self.values.of(node.value))
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.made.returns.append(self.values.of(node.value))

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> None:
        self.made.yields = True
        if node.value is not None:
            if isinstance(node, ast.YieldFrom):
                self.made.iterated.append(self.values.of(node.value))
            self.visit(node.value)
            self.made.returns.append(self.values.of(node.value))

    visit_YieldFrom = visit_Yield

    # ---------------------------------------------------------------- inner scopes

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._signature(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self.bind(node.name)
        owner = None if self.in_class else definitions.added_to(node)
        found = function_reader.summary(node, self.in_class or owner is not None)
        self.note(node.name, found)
        if owner is not None:
            found.owner = owner
            self.note(f".{node.name}", found)
        definitions.defaults(self, node)
        definitions.decorated(self, node)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        # A lambda is usually called where it stands.
        self._signature(node.args)
        inner = function_reader.summary(node)
        for name, line in inner.uses.items():
            self.need(name, line, doubtful=name in inner.forgiven)
        for name, how in inner.changes.items():
            if name not in inner.parameters:
                self._change(name, Change(how))
        self.made.calls.extend(inner.calls)
        self.made.iterated.extend(inner.iterated)
        self.note(lambda_name(node), inner)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in [*node.bases, *[word.value for word in node.keywords], *node.decorator_list]:
            self.visit(each)
        inner = ScopeReader(DefUse(imports=dict(self.made.imports)), in_class=True)
        inner.block(node.body, set())
        definitions.class_made(self, node, inner)

    def _signature(self, args: ast.arguments) -> None:
        for default in [*args.defaults, *[each for each in args.kw_defaults if each]]:
            self.visit(default)
        for each in expressions.all_arguments(args):
            if each.annotation is not None:
                self.visit(each.annotation)

    def note(self, name: str, found: FunctionSummary) -> None:
        self.made.functions.setdefault(name, []).append(found)
        self.made.defines_unknown = self.made.defines_unknown or found.defines_unknown

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> None:
        self._generators(node.generators, [node.elt])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = _comprehension

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._generators(node.generators, [node.key, node.value])

    def _generators(self, generators: list[ast.comprehension], made_of: list[ast.expr]) -> None:
        names = {
            each.id
            for generator in generators
            for each in ast.walk(generator.target)
            if isinstance(each, ast.Name)
        }
        self.visit(generators[0].iter)
        self.hidden.append(names)
        for number, generator in enumerate(generators):
            if number:
                self.visit(generator.iter)
            self.made.iterated.append(self.values.of(generator.iter))
            self.values.enter(generator)
            for condition in generator.ifs:
                self.visit(condition)
        for each in made_of:
            self.visit(each)
        for _ in generators:
            self.values.leave()
        self.hidden.pop()

    def _alias(self, target: ast.expr, value: ast.expr, *, is_element: bool = False) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            starred = any(isinstance(each, ast.Starred) for each in target.elts)
            given = value.elts if isinstance(value, ast.Tuple | ast.List) and not starred else ()
            if len(given) == len(target.elts):
                for each, one in zip(target.elts, given, strict=True):
                    self._alias(each, one, is_element=is_element)
                return
            self.made.iterated.append(self.values.of(value))
            for each in target.elts:
                self._alias(each, value, is_element=True)
            return
        if isinstance(target, ast.Starred):
            self._alias(target.value, value, is_element=True)
            return
        chain = self.values.chain(target)
        if not chain:
            return
        made = self.values.of(value)
        is_kept = len(chain) > 1
        self.made.aliases.append(
            Alias(chain[0], element(made) if is_element else made, is_element, is_kept)
        )
