"""Code that a session ran, split into statements, and cells made of the chosen statements.

A cell often defines a function and submits it. The definition of such a cell is sent, the
submission is not. Pure: text in, text out. Pieces keep the line numbers of their cell.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool.cells import CellChoice, CellSelection, NotebookCell, Problem, choose, magics
from benchpool.cells.scope_reader import def_use_of
from benchpool.functions.session import RanCell

CALL = "benchpool-call"
"""ID of the cell that calls the function."""

SENDING = (
    "`{name}` is set by a statement that sends jobs, which the job does not run: pass the value "
    "as an argument of the function"
)


@dataclass(frozen=True, slots=True)
class Senders:
    """Names of a session that submit jobs.

    Attributes:
        modules: Names of the module ``benchpool``.
        verbs: Names of ``benchpool.submit`` and ``benchpool.map`` themselves.
        functions: Functions made by ``benchpool.remote``.
    """

    modules: frozenset[str] = frozenset({"benchpool"})
    verbs: frozenset[str] = frozenset()
    functions: frozenset[str] = frozenset()

    @classmethod
    def of(cls, names: Mapping[str, Iterable[str]]) -> Senders:
        """Return the senders for the result of ``session.sender_names``."""
        return cls(**{field: frozenset(each) for field, each in names.items()})

    def send(self, statement: ast.stmt) -> bool:
        """Return whether running a statement submits a job.

        >>> Senders().send(ast.parse("job = benchpool.submit(train)").body[0])
        True
        >>> Senders().send(ast.parse("def later(): benchpool.submit(train)").body[0])
        False
        """
        return any(
            self._sends(each.func) for each in _evaluated(statement) if isinstance(each, ast.Call)
        )

    def _sends(self, called: ast.expr) -> bool:
        if isinstance(called, ast.Name):
            return called.id in self.verbs
        if not isinstance(called, ast.Attribute) or called.attr not in {"submit", "map"}:
            return False
        root = called.value
        if isinstance(root, ast.Call) and isinstance(root.func, ast.Attribute):
            root = root.func.value  # train.options(gpus=2).submit()
        return isinstance(root, ast.Name) and root.id in self.modules | self.functions


@dataclass(frozen=True, slots=True)
class _Piece:
    cell: int
    text: str
    first: int
    stands_for: str | None = None
    """Name that it sets, if it is a statement that submits."""

    @property
    def source(self) -> str:
        return "\n" * (self.first - 1) + self.text


def chosen(cells: Sequence[RanCell], call: str, senders: Senders) -> CellSelection:
    """Choose the cells that ran and that a call needs.

    Returns one choice for each cell, with the part of it that the job runs, and one for the call.

    >>> ran = [
    ...     RanCell("in-1", 1, "rate = 2"),
    ...     RanCell("in-2", 2, "def f(x):\\n    return x * rate\\njob = benchpool.submit(f, 1)", 3),
    ... ]
    >>> [(each.id, each.run) for each in chosen(ran, "f(1)", Senders()).cells if each.included]
    [('in-1', 'rate = 2'), ('in-2', 'def f(x):\\n    return x * rate'), ('benchpool-call', 'f(1)')]
    """
    pieces = [each for number, cell in enumerate(cells) for each in _pieces(number, cell, senders)]
    found = choose(
        [
            *[NotebookCell(str(number), each.source) for number, each in enumerate(pieces)],
            NotebookCell(CALL, call, selected=True),
        ]
    )
    included = [each.included for each in found.cells]
    choices = []
    for number, cell in enumerate(cells):
        own = [at for at, piece in enumerate(pieces) if piece.cell == number and included[at]]
        why = "; ".join(dict.fromkeys(found.cells[at].why or "" for at in own))
        run = _joined(pieces[at] for at in own)
        choices.append(CellChoice(cell.id, cell.number - 1, bool(own), False, why or None, run))
    last = found.cells[-1]
    number = max((cell.number for cell in cells), default=0)
    choices.append(CellChoice(CALL, number, last.included, True, last.why, last.run))
    problems = [_of_cell(each, pieces, cells) for each in found.problems]
    problems += [
        Problem("error", SENDING.format(name=piece.stands_for), cells[piece.cell].id, piece.first)
        for at, piece in enumerate(pieces)
        if included[at] and piece.stands_for
    ]
    problems.sort(key=lambda each: each.level != "error")
    return CellSelection(tuple(choices), tuple(problems))


def with_call(found: CellSelection, call: str) -> CellSelection:
    """Return the same choice for another call with the same needs."""
    return CellSelection((*found.cells[:-1], replace(found.cells[-1], run=call)), found.problems)


def shape_of(call: str) -> str:
    """Return the shape of a call: its text without numbers and strings.

    >>> shape_of("f(1, lr=0.1)") == shape_of("f(2, lr='a')") != shape_of("g(1, lr=0.1)")
    True
    """
    tree = ast.parse(call)
    for each in ast.walk(tree):
        if isinstance(each, ast.Constant):
            each.value = None
    return ast.dump(tree)


def _pieces(number: int, cell: RanCell, senders: Senders) -> Iterator[_Piece]:
    read = magics.read(cell.source)
    if read.sends or (read.tree is None and not read.opaque):
        return  # %%train ran elsewhere, and text that is not Python never ran
    body = [] if read.tree is None else read.tree.body
    whole = read.run.lstrip().startswith("%%")
    if not body or (whole and cell.until is None and not any(map(senders.send, body))):
        yield _Piece(number, read.run, 1)
        return
    lines = read.run.split("\n")
    done = next((at for at, line in enumerate(lines, 1) if line.startswith("%%")), 0)
    for first, last, statements in _ranges(body):
        if cell.until is not None and first > cell.until:
            return
        runs_now = cell.until is not None and first <= cell.until <= last
        if runs_now or any(map(senders.send, statements)):
            names = def_use_of(ast.Module(statements, [])).possible_definitions
            for name in sorted(names):
                yield _Piece(number, f"{name} = None", first, stands_for=name)
        else:
            yield _Piece(number, "\n".join(lines[done:last]), done + 1)
        done = last


def _ranges(body: Sequence[ast.stmt]) -> list[tuple[int, int, list[ast.stmt]]]:
    """Return the lines of statements; statements that share a line form one range."""
    found: list[tuple[int, int, list[ast.stmt]]] = []
    for each in body:
        decorators: list[ast.expr] = getattr(each, "decorator_list", [])
        first = min([each.lineno, *[one.lineno for one in decorators]])
        last = each.end_lineno or first
        if found and first <= found[-1][1]:
            before = found.pop()
            found.append((before[0], last, [*before[2], each]))
        else:
            found.append((first, last, [each]))
    return found


def _joined(pieces: Iterator[_Piece]) -> str:
    """Return one text with each piece on its own lines."""
    lines: list[str] = []
    for each in pieces:
        lines += [""] * (each.first - 1 - len(lines))
        lines += each.text.split("\n")
    return "\n".join(lines).rstrip("\n")


def _of_cell(problem: Problem, pieces: Sequence[_Piece], cells: Sequence[RanCell]) -> Problem:
    """Return a problem of a piece as a problem of its cell."""
    if problem.cell in (None, CALL):
        return problem
    cell = cells[pieces[int(problem.cell)].cell]
    return Problem(problem.level, problem.text, cell.id, problem.line)


def _evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that running a statement evaluates, without bodies of functions."""
    yield node
    if isinstance(node, ast.Lambda):
        return
    skipped = node.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
    for each in ast.iter_child_nodes(node):
        if each not in skipped:
            yield from _evaluated(each)
