"""What one cell uses from before it, defines for after it, and may change in place.

Statements are taken in order, so that a name that the cell itself has bound by then is not
needed from elsewhere. Branches bind their names only perhaps. Bodies of functions need their names
when they are called, not where they stand. What cannot be known is taken to happen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from benchpool.cells import expressions, magics
from benchpool.cells.def_use import Called, DefUse, FunctionSummary

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def def_use_of(tree: ast.Module) -> DefUse:
    """Return what a cell uses and defines."""
    reader = _Reader(DefUse())
    certain = reader.block(tree.body, set())
    reader.made.defines |= certain
    reader.made.may_define -= certain
    return reader.made


class _Reader(ast.NodeVisitor):
    """Walks one scope in order. ``self.certain`` are the names that are bound by now."""

    def __init__(self, made: DefUse, owner: str | None = None) -> None:
        self.made = made
        self.certain: set[str] = set()
        self.hidden: list[set[str]] = []  # names of comprehensions around this place
        self.owner = owner

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
        # A loop is taken to run at least once: else each `loss` after it would need older cells.
        self.visit(node.iter)
        self._alias(node.target, node.iter)
        self.visit(node.target)
        self.certain = self.block(node.body, self.certain)
        self.block(node.orelse, self.certain)

    visit_AsyncFor = visit_For

    def visit_Try(self, node: ast.Try | ast.TryStar) -> None:
        before = set(self.made.uses)
        after_body = self.block([*node.body, *node.orelse], self.certain)
        caught = {expressions.root_of(each.type) for each in node.handlers if each.type is not None}
        if "NameError" in caught:
            self.made.forgiven |= self.made.uses.keys() - before
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
        """Nothing is needed for it; said here because the inherited method is slow."""

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.made.bound_at.setdefault(node.id, frozenset(self.certain))
            self._need(node.id, node.lineno)
        elif isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        else:
            self._need(node.id, node.lineno)
            self.certain.discard(node.id)

    def _need(self, name: str, line: int) -> None:
        if name not in self.certain and not any(name in names for names in self.hidden):
            self.made.uses.setdefault(name, line)

    def _bind(self, name: str) -> None:
        if self.hidden and name in self.hidden[-1]:
            return
        self.certain.add(name)
        self.made.may_define.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._alias(target, node.value)
            self._note_function(target, node.value)
            self.visit(target)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.visit(node.annotation)
        if node.value is not None:
            self.visit(node.value)
            self._alias(node.target, node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        root = expressions.root_of(node.target)
        if root is not None:
            self._need(root, node.lineno)
            self.made.changes.add(root)
        self.visit(node.target)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._alias(node.target, node.value)
        self.certain.add(node.target.id)  # leaks out of comprehensions
        self.made.may_define.add(node.target.id)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.visit(item.context_expr)
            if item.optional_vars is not None:
                self._alias(item.optional_vars, item.context_expr)
                self.visit(item.optional_vars)
        self.certain = self.block(node.body, self.certain)

    visit_AsyncWith = visit_With

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            name = each.asname or each.name.split(".")[0]
            self.made.imports[name] = each.name if each.asname else name
            self._bind(name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or "."
        for each in node.names:
            if each.name == "*":
                self.made.defines_unknown = f"from {module} import *"
                continue
            name = each.asname or each.name
            self.made.imports[name] = f"{module}.{each.name}"
            self._bind(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self._stored(node)
        self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        self._stored(node)
        self.visit(node.value)
        self.visit(node.slice)

    def _stored(self, node: ast.Attribute | ast.Subscript) -> None:
        """Note that ``a.b = c`` and ``a[b] = c`` change ``a``."""
        root = expressions.root_of(node)
        if root is not None and not isinstance(node.ctx, ast.Load):
            self.made.changes.add(root)

    # ---------------------------------------------------------------- calls

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        chain = expressions.chain_of(node.func)
        if not chain:
            return
        self.made.calls.append(
            Called(
                chain,
                tuple(frozenset(expressions.held_by(each)) for each in node.args),
                tuple(
                    (each.arg, frozenset(expressions.held_by(each.value))) for each in node.keywords
                ),
                node.lineno,
            )
        )
        self._note_special(node, chain)

    def _note_special(self, node: ast.Call, chain: expressions.Chain) -> None:
        if chain in {("input",), ("getpass",), ("getpass", "getpass")}:
            self.made.asks = node.lineno
        if chain in {("exec",), ("globals",)}:
            self.made.defines_unknown = f"{chain[0]}()"
        if chain == ("get_ipython", "()", "run_line_magic"):
            self._line_magic(node)

    def _line_magic(self, node: ast.Call) -> None:
        words = [each.value for each in node.args if isinstance(each, ast.Constant)]
        name, line = (str(words[0]), str(words[-1])) if len(words) > 1 else ("", "")
        if name in {"time", "timeit", "prun"}:
            inner = ast.parse(line) if expressions.parses(line) else ast.Module([], [])
            self.certain = self.block(inner.body, self.certain)
        elif (
            name in {"run", "pylab", "store", "load_ext", "reload_ext"}
            and line not in magics.SCREEN_EXTENSIONS
        ):
            self.made.defines_unknown = f"%{name} {line}".strip()
            self.made.ambient.setdefault(f"%{name} {line}".strip(), node.lineno)
        elif name in {"cd", "env", "set_env", "pushd", "popd"}:
            self.made.ambient.setdefault(f"%{name}", node.lineno)

    # ---------------------------------------------------------------- inner scopes

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._signature(node.args)
        if node.returns is not None:
            self.visit(node.returns)
        self._bind(node.name)
        self._note(node.name, summary(node))

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        # A lambda is mostly called where it stands.
        self._signature(node.args)
        inner = summary(node)
        for name, line in inner.uses.items():
            self._need(name, line)
        self.made.changes |= inner.changes - set(inner.parameters)
        self.made.calls.extend(inner.calls)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in [*node.decorator_list, *node.bases, *[word.value for word in node.keywords]]:
            self.visit(each)
        inner = _Reader(DefUse(imports=dict(self.made.imports)))
        inner.block(node.body, set())
        for name, line in inner.made.uses.items():
            self._need(name, line)
        self.made.functions.setdefault(node.name, [])
        for name, methods in inner.made.functions.items():
            self.made.functions.setdefault(node.name, []).extend(methods)
            self.made.functions.setdefault(f".{name}", []).extend(methods)
        self.made.defines_unknown = self.made.defines_unknown or inner.made.defines_unknown
        self._bind(node.name)

    def _signature(self, args: ast.arguments) -> None:
        for default in [*args.defaults, *[each for each in args.kw_defaults if each]]:
            self.visit(default)
        for each in expressions.all_arguments(args):
            if each.annotation is not None:
                self.visit(each.annotation)

    def _note_function(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name) and isinstance(value, ast.Lambda):
            self._note(target.id, summary(value))

    def _note(self, name: str, found: FunctionSummary) -> None:
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
            for condition in generator.ifs:
                self.visit(condition)
        for each in made_of:
            self.visit(each)
        self.hidden.pop()

    def _alias(self, target: ast.expr, value: ast.expr) -> None:
        held = expressions.held_by(value)
        for each in ast.walk(target):
            if isinstance(each, ast.Name):
                self.made.aliases |= {(each.id, name) for name in held if name != each.id}


# -------------------------------------------------------------------- functions of the notebook


def summary(node: Function) -> FunctionSummary:
    """Return what calling a function needs and changes."""
    parameters = expressions.all_arguments(node.args)
    reader = _Reader(DefUse())
    body = [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
    outer = expressions.declared_outer(body)
    own = expressions.bound_in(body) - outer
    bound = {each.arg for each in parameters} | own
    reader.block(body, bound)
    needs = dict(reader.made.uses)
    for found in reader.made.functions.values():
        for inner in found:
            needs.update({k: v for k, v in inner.uses.items() if k not in bound})
    names = [each.arg for each in parameters]
    if names and names[0] in {"self", "cls"}:
        names = names[1:]
    rest = node.args.vararg.arg if node.args.vararg else None
    changes = {name for name in reader.made.changes if name not in own or name in names}
    return FunctionSummary(
        tuple(names),
        rest,
        {name: line for name, line in needs.items() if name not in bound},
        changes | (outer & reader.made.possible_definitions) | _changed_through(reader.made, own),
        tuple(reader.made.calls),
        reader.made.aliases,
        reader.made.defines_unknown,
    )


def _changed_through(made: DefUse, own: set[str]) -> set[str]:
    """Return what is changed through another name of the body (``w = model.w; w[0] = 1``)."""
    changed = made.changes & own
    reached: set[str] = set()
    waiting = list(changed)
    while waiting:
        name = waiting.pop()
        sources = {source for target, source in made.aliases if target == name}
        waiting += sources - reached
        reached |= sources
    return reached - own
