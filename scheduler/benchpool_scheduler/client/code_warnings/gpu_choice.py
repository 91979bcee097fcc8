"""Detection of code that selects its own GPUs, overriding those of the job. Pure."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator

from benchpool_scheduler.client.code_warnings.sources import shell_lines
from benchpool_scheduler.client.imports.reading import Piece
from benchpool_scheduler.phrases import count

VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
_NAMES = "|".join(VARIABLES)
_ASSIGNED = re.compile(rf"(?<![\w$\{{])({_NAMES})=([^\s;&|]*)")
_MAGIC = re.compile(rf"^\s*%(?:set_)?env\s+({_NAMES})(?:\s*=\s*|\s+)(\S+)\s*$")
_DEVICE = re.compile(r"(?:cuda|(?:/(?:device:)?)?GPU):(\d+)", re.IGNORECASE)
_GIVEN = re.compile(rf"{_NAMES}|LOCAL_RANK")
"""Names in a value that show that it comes from the job's own settings."""

_RUNS = re.compile(r"system|run|call|open|output")
"""Names of functions that pass a text to the shell."""
_COMPARES = frozenset({"print", "startswith", "endswith", "replace", "split", "count", "index"})
"""Functions that do not use the device named by their argument."""

Found = Iterator[tuple[int, str]]


def choices(piece: Piece, gpus: int, *, contained: bool = False) -> Found:
    """Yield line and text of each choice of GPUs that may not be among the job's own.

    Code that is nested too deeply to analyse yields no warnings from its Python parts.

    Args:
        gpus: GPUs of each worker.
        contained: The code runs in a container, which sees only its own GPUs, numbered from 0.
    """
    variables, devices = list(_outside_python(piece)), list[tuple[int, int]]()
    with contextlib.suppress(RecursionError):
        variables += _variables(piece)
        devices += _devices(piece.tree)
    for line, name, value in variables:
        text = _set(name, value, gpus, contained=contained)
        if text is not None:
            yield line, text
    if gpus:
        for line, number in devices:
            if number >= gpus:
                yield line, _beyond(number, gpus)


def _set(name: str, value: str | None, gpus: int, *, contained: bool) -> str | None:
    """Return the warning about a variable, or None. ``value``: None if it is computed."""
    if value in ("", "-1"):
        hides = f"sets {name} to `{value}`, which hides the GPUs that the job is given"
        return f"{hides}: remove it, or send the job with 0 GPUs" if gpus else None
    numbers = [part.strip() for part in (value or "?").split(",")]
    if contained and all(part.isdecimal() and int(part) < gpus for part in numbers):
        return None
    what = f"sets {name}" if value is None else f"sets {name} to `{value}`"
    return (
        f"{what}, which overrides the GPUs that the job is given and may name those of another "
        "job: remove it"
    )


def _beyond(number: int, gpus: int) -> str:
    return (
        f"uses GPU {number}, and the job is sent with {count(gpus, 'GPU')}: use numbers below "
        f"{gpus}, or ask for {number + 1} GPUs"
    )


def _outside_python(piece: Piece) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, variable and value of assignments by magics and the shell."""
    for number, line in enumerate(piece.text.split("\n"), 1):
        if magic := _MAGIC.match(line):
            yield number, magic[1], _unquoted(magic[2])
    for number, line in shell_lines(piece.text):
        for name, value in _ASSIGNED.findall(line):
            yield number, name, None if "$" in value or "{" in value else _unquoted(value)


def _variables(piece: Piece) -> Iterator[tuple[int, str, str | None]]:
    """Yield line, variable and value of assignments in Python."""
    for node in ast.walk(piece.tree):
        for name, value, line in _named_values(node):
            if not _GIVEN.search(ast.unparse(value)):
                yield line, name, _fixed(value)
        if isinstance(node, ast.Call) and _RUNS.search(_called(node)):
            for each in node.args:
                if isinstance(each, ast.Constant) and isinstance(each.value, str):
                    for name, text in _ASSIGNED.findall(each.value):
                        yield each.lineno, name, _unquoted(text)


def _named_values(node: ast.AST) -> Iterator[tuple[str, ast.expr, int]]:
    """Yield the variables that a node sets, with their values and lines.

    ``setdefault`` of CUDA_VISIBLE_DEVICES has no effect, because the pool sets that variable.
    """
    match node:
        case ast.Assign(targets=targets, value=value, lineno=line):
            for each in targets:
                match each:
                    case ast.Subscript(held, ast.Constant(name)) if name in VARIABLES:
                        if "env" in ast.unparse(held).lower():
                            yield str(name), value, line
        case ast.Call(ast.Attribute(attr=method), [ast.Constant(name), value], lineno=line):
            given = method == "setdefault" and name != VARIABLES[0]
            if name in VARIABLES and (given or method == "putenv"):
                yield str(name), value, line
        case ast.keyword(arg=str(name), value=value) if name in VARIABLES:
            yield name, value, node.lineno
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and key.value in VARIABLES:
                    yield str(key.value), value, key.lineno


def _fixed(value: ast.expr) -> str | None:
    """Return a literal value as text, or None if it is computed."""
    match value:
        case ast.Constant(value=str() | int() as fixed):
            return str(fixed)
        case ast.Call(func=ast.Name(id="str"), args=[ast.Constant(value=fixed)]):
            return str(fixed)
    return None


def _called(node: ast.Call) -> str:
    """Return the last part of a function's name, or an empty text."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _unquoted(text: str) -> str:
    return text.strip("'\"")


def _devices(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Yield line and number of each device that a call or an assignment names."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=func, args=args, keywords=keywords):
                values = [*args, *(each.value for each in keywords)]
                if _called(node) not in _COMPARES:
                    yield from _named_devices(values)
                yield from _numbered(ast.unparse(func).split("."), args)
                for each in keywords:
                    if each.arg == "device_ids" and isinstance(each.value, ast.List):
                        yield from _numbers(each.value.elts)
            case ast.Assign(value=value):
                yield from _named_devices([value])


def _named_devices(values: list[ast.expr]) -> Iterator[tuple[int, int]]:
    for each in values:
        if isinstance(each, ast.IfExp) and "device_count" not in ast.unparse(each.test):
            yield from _named_devices([each.body, each.orelse])
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            found = _DEVICE.fullmatch(each.value)
            if found is not None:
                yield each.lineno, int(found[1])


def _numbered(called: list[str], args: list[ast.expr]) -> Iterator[tuple[int, int]]:
    """Yield the number in ``torch.cuda.set_device(3)``, ``x.cuda(3)``, ``device("cuda", 3)``."""
    sets = called[-2:] in (["cuda", "set_device"], ["cuda", "Device"], ["cuda", "device"])
    if sets or (called[-1] == "cuda" and len(called) > 1):
        yield from _numbers(args[:1])
    elif called[-1] == "device" and args and ast.unparse(args[0]) == "'cuda'":
        yield from _numbers(args[1:2])


def _numbers(values: list[ast.expr]) -> Iterator[tuple[int, int]]:
    for each in values:
        if isinstance(each, ast.Constant) and type(each.value) is int:
            yield each.lineno, each.value
