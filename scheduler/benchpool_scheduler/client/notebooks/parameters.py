"""Parameters of a notebook, by papermill's conventions, and replacement of their values.

The cell with the tag ``parameters`` declares them: names, types, defaults, and descriptions in the
comments after them. Their values go into a separate cell after it, with the tag
``injected-parameters``. In other cells, a name that is bound once, to a constant at the top of a
cell, is also a parameter. Its value replaces the constant. Pure.
"""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from benchpool_scheduler.client.notebooks import parameter_types
from benchpool_scheduler.client.notebooks.job_notebook import JobCell
from benchpool_scheduler.client.notebooks.parameter_types import ParameterType
from benchpool_scheduler.contract.parameters import ParameterValue
from benchpool_scheduler.errors import InvalidInput

TAG = "parameters"
INJECTED = "injected-parameters"
LONGEST = 200
"""Maximum length of a constant that counts as a parameter, in characters."""


@dataclass(frozen=True, slots=True)
class NotebookParameter:
    """Name whose value can be set.

    Attributes:
        type: ``any`` if neither the annotation nor the default determines it.
        default: Text of the default in the cell.
        help: Comment after it.
        cell: ID of its cell. ``tagged``: whether that is the parameters cell.
        optional: Whether None is allowed.
    """

    name: str
    type: ParameterType
    default: str
    help: str
    cell: str
    tagged: bool
    optional: bool = False
    _place: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Position of the constant: start line and column, end line and column, as in ``ast``."""


@dataclass(frozen=True, slots=True)
class Parametrized:
    """Cells with the given values, and the parameters of the job by name."""

    cells: tuple[JobCell, ...]
    values: Mapping[str, ParameterValue]


def declared(cells: Sequence[JobCell]) -> tuple[NotebookParameter, ...]:
    """Return the parameters of cells, beginning with the tagged cell.

    >>> found = declared([
    ...     JobCell("a", 1, "lr = 0.1  # step size\\nsteps: int = 3", tags=("parameters",)),
    ...     JobCell("b", 2, "seed = 7\\ncount = 0\\ncount += 1"),
    ... ])
    >>> [(each.name, each.type, each.default, each.help, each.tagged) for each in found]
    [('lr', 'float', '0.1', 'step size', True), ('steps', 'int', '3', '', True), \
('seed', 'int', '7', '', False)]
    """
    code = [each for each in cells if each.cell_type == "code"]
    trees = {each.id: _tree(each.source) for each in code}
    bound = Counter(name for tree in trees.values() for name in _bound(tree))
    tagged = next((each for each in code if TAG in each.tags), None)
    found = {} if tagged is None else {it.name: it for it in _of_cell(tagged, trees[tagged.id])}
    others = [
        replace(it, tagged=False)
        for each in code
        if each is not tagged and INJECTED not in each.tags
        for it in _of_cell(each, trees[each.id])
        if bound[it.name] == 1 and it.name not in found and _is_constant(it.default)
    ]
    return (*found.values(), *others)


def with_values(
    cells: Sequence[JobCell], given: Mapping[str, object], what: str = "This notebook"
) -> Parametrized:
    """Return the cells with these values, and all parameters of the job.

    Args:
        given: Values by name. A ``WrittenValue`` is parsed by the type of its parameter.
        what: Subject of error messages.

    Raises:
        InvalidInput: There is no such parameter, or it has another type.
    """
    known = {each.name: each for each in declared(cells)}
    values = {name: _read(name, value, known, what) for name, value in given.items()}
    tagged = [it for it in known.values() if it.tagged]
    injected = {name: value for name, value in values.items() if known[name].tagged}
    made = []
    for cell in cells:
        if injected and INJECTED in cell.tags:
            continue
        places = {
            it._place: parameter_types.written(values[it.name])
            for it in known.values()
            if it.cell == cell.id and not it.tagged and it.name in values
        }
        made.append(replace(cell, source=_replaced(cell.source, places)) if places else cell)
        if injected and tagged and cell.id == tagged[0].cell:
            made.append(_injected(injected, cell.number))
    defaults = dict(_defaults(tagged))
    return Parametrized(tuple(made), {n: recorded(v) for n, v in (defaults | values).items()})


def recorded(value: object) -> ParameterValue:
    """Return a value in the form of the job's facts: plain data unchanged, other values as text.

    >>> recorded((1, 2)), recorded({"a": 1}), recorded(float("nan"))
    ([1, 2], "{'a': 1}", 'nan')
    """
    if value is None or isinstance(value, bool | str):
        return value if not isinstance(value, str) else str(value)[:4096]
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 53 else str(value)
    if isinstance(value, float):
        number = float(value)
        return number if number - number == 0 else str(number)
    if isinstance(value, list | tuple) and len(value) <= 256:
        parts = [recorded(each) for each in value]
        if not any(isinstance(each, list) for each in parts):
            return parts  # type: ignore[return-value]
    return repr(value)[:4096]


# --------------------------------------------------------------------------- reading cells


def _tree(source: str) -> ast.Module:
    """Return the tree of a cell without its magics. Empty if it is not valid Python."""
    lines = [
        f"{line[: len(line) - len(line.lstrip())]}pass" if line.lstrip()[:1] in ("%", "!") else line
        for line in source.split("\n")
    ]
    try:
        return ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _of_cell(cell: JobCell, tree: ast.Module) -> Iterator[NotebookParameter]:
    comments = _comments(cell.source)
    for node in tree.body:
        annotation: str | None = None
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value, annotation = node.target, node.value, ast.unparse(node.annotation)
        else:
            continue
        if not isinstance(target, ast.Name) or value.end_lineno is None:
            continue
        comment = comments.get(value.end_lineno, "")
        if annotation is None and comment.startswith("type:"):
            annotation, _, comment = comment.removeprefix("type:").strip().partition(" ")
        default = ast.get_source_segment(cell.source, value) or ""
        plain = _constant(value)
        type_, optional = parameter_types.annotated(annotation) if annotation else ("any", False)
        type_ = parameter_types.of_value(plain) if type_ == "any" else type_
        place = (value.lineno, value.col_offset, value.end_lineno, value.end_col_offset or 0)
        yield NotebookParameter(
            target.id, type_, default, comment.lstrip("# "), cell.id, True,
            optional or plain is None, place,
        )  # fmt: skip


def _comments(source: str) -> dict[int, str]:
    """Return the comments after code, by line."""
    found: dict[int, str] = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
                found[token.start[0]] = token.string.lstrip("# ").strip()
    except (tokenize.TokenError, SyntaxError):
        pass
    return found


def _bound(tree: ast.Module) -> Iterator[str]:
    """Yield each name that a cell binds, once per binding, except local names of functions."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            for each in ast.walk(node):
                if isinstance(each, ast.Global | ast.Nonlocal):
                    yield from each.names
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        waiting += ast.iter_child_nodes(node)


def _constant(node: ast.expr) -> object:
    """Return the value of a literal, or a new object for any other expression."""
    try:
        value: object = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return object()
    return value


def _is_constant(text: str) -> bool:
    if len(text) > LONGEST or "\n" in text:
        return False
    value = _constant(ast.parse(text, mode="eval").body)
    return isinstance(value, bool | int | float | str) or (
        isinstance(value, list | tuple) and len(value) > 0
    )


# --------------------------------------------------------------------------- values


def _read(name: str, value: object, known: Mapping[str, NotebookParameter], what: str) -> object:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        tagged = [each for each in known if known[each].tagged] or list(known)
        there = f"it has {', '.join(tagged[:20])}" if tagged else f"give a cell the tag {TAG}"
        hint = f"did you mean {close[0]}? {there[0].upper()}{there[1:]}" if close else there
        raise InvalidInput(
            f"{what} has no parameter `{name}`: {hint}.",
            field=f"parameters.{name}",
        )
    it = known[name]
    return parameter_types.read(name, value, it.type, optional=it.optional, default=it.default)


def _defaults(parameters: Sequence[NotebookParameter]) -> Iterator[tuple[str, object]]:
    """Yield the defaults that are literals."""
    for each in parameters:
        try:
            yield each.name, ast.literal_eval(each.default)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue  # computed


def _injected(values: Mapping[str, object], number: int) -> JobCell:
    lines = ["# Parameters"]
    lines += [f"{name} = {parameter_types.written(value)}" for name, value in values.items()]
    return JobCell(INJECTED, number, "\n".join(lines), tags=(INJECTED,))


def _replaced(source: str, places: Mapping[tuple[int, int, int, int], str]) -> str:
    """Return a text with replacements at these positions, which do not overlap."""
    lines = [each.encode() for each in source.split("\n")]
    for first, begin, last, end in sorted(places, reverse=True):
        text = places[first, begin, last, end].encode()
        lines[first - 1 : last] = [lines[first - 1][:begin] + text + lines[last - 1][end:]]
    return b"\n".join(lines).decode()
