"""Code that uses files above the folder that travels: they are not in the job."""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, takewhile
from pathlib import Path, PurePosixPath

from benchpool_scheduler.client.imports import shell_paths
from benchpool_scheduler.client.imports.own_files import OwnModules
from benchpool_scheduler.client.imports.reading import Piece, imports_of
from benchpool_scheduler.client.imports.shell_paths import NamedPath

_JOINS = frozenset({"join", "joinpath", "Path", "PurePath", "PosixPath", "PurePosixPath"})
_KEEPS = frozenset(
    {"abspath", "realpath", "normpath", "expanduser", "resolve", "absolute", "str", "fspath"}
)
"""Functions that return the path that they are given, as far as it matters here."""
_FOLDERS = frozenset({"chdir", "listdir", "walk", "scandir", "iterdir"})
"""Functions for which the folder above alone is a use of what is in it."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class SentFolder:
    """The folder that travels.

    Attributes:
        root: Where it is; the job runs in a copy of it.
        code: Path of what is sent, relative to it.
    """

    root: Path
    code: str


def uses(
    piece: Piece, sent: SentFolder, commands: Iterable[tuple[int, str]] = ()
) -> Iterator[tuple[int, str]]:
    """Yield line and text of each use of a file or folder that is there, above the folder.

    Relative paths are those of the current folder, which is the root in the job as here.

    Args:
        commands: Lines of the piece, from 1, that a shell or a magic reads.
    """
    said: set[str] = set()
    named = (_named(line, it) for line, text in commands for it in shell_paths.of_command(text))
    for each in chain(_paths(piece, sent), named):
        if not each.path.startswith("..") or each.path in said:
            continue
        if each.imports:
            modules = _modules_in(sent.root / each.path, piece, sent.root)
            what = f"{', '.join(f'`{name}`' for name in modules)} in `{each.path}`"
            used = bool(modules)
        else:
            what, used = f"`{each.path}`", each.is_used and _is_there(sent.root, each.path)
        if used:
            said.add(each.path)
            yield each.line, _text(what, each, sent)


def modules_on_path(pieces: Sequence[Piece], root: Path) -> frozenset[str]:
    """Return the modules that pieces import from folders that they put on ``sys.path``.

    Args:
        root: The folder that the code runs in.
    """
    sent = SentFolder(root, "")
    return frozenset(
        module
        for piece in pieces
        for each in _paths(piece, sent)
        if each.imports
        for module in _modules_in(root / each.path, piece, root)
    )


@dataclass(frozen=True, slots=True)
class _UsedPath:
    """A path that stands in code.

    Attributes:
        imports: It is put on ``sys.path``. ``is_used``: it is more than ``..``, or is read as such.
        by_file: It begins at the file of the code, so that it is the same wherever that is.
    """

    line: int
    path: str
    imports: bool
    is_used: bool
    by_file: bool


def _named(line: int, found: NamedPath) -> _UsedPath:
    return _UsedPath(line, found.path, imports=False, is_used=found.is_used, by_file=False)


def _paths(piece: Piece, sent: SentFolder) -> Iterator[_UsedPath]:
    """Yield the paths of a piece, up to where its code is nested too deeply to be read."""
    beside = os.path.dirname(sent.code) if sent.code.endswith(".py") else ""
    place = piece.where if piece.where == sent.code else os.path.join(beside, piece.where)
    reader = _Reader(place if piece.where.endswith(".py") else "")
    with contextlib.suppress(RecursionError):
        for node, call, path in reader.paths(piece.tree):
            used = bool(_below(path).parts) or call.rpartition(".")[2] in _FOLDERS
            by_file = "__file__" in ast.unparse(node)
            yield _UsedPath(node.lineno, path, "sys.path" in call, used, by_file)
        for each in ast.walk(piece.tree):
            if isinstance(each, ast.Call):
                yield from (_named(each.lineno, it) for it in shell_paths.of_call(each))


def _text(what: str, used: _UsedPath, sent: SentFolder) -> str:
    above, inside = sent.root, _below(used.path)
    for _ in range(len(PurePosixPath(used.path).parts) - len(inside.parts)):
        above = above.parent
    code = (sent.root / sent.code).relative_to(above).as_posix()
    how = f"run `benchpool submit {code}` in {above}" if sent.code else f"send it from {above}"
    change = f", with `{inside.as_posix()}` instead of `{used.path}` in the code"
    return (
        f"{what} is above the folder {sent.root.name or '/'} and does not travel with the job: "
        f"{how}{'' if used.by_file else change}"
    )


def _below(path: str) -> PurePosixPath:
    """Return what follows the ``..`` of a path."""
    return PurePosixPath(*[part for part in PurePosixPath(path).parts if part != ".."])


def _is_there(root: Path, path: str) -> bool:
    """Return whether a file is there, or the folder that it would be written to.

    Of a pattern (``*.csv``) it is the folder before it.
    """
    parts = PurePosixPath(path).parts
    fixed = list(takewhile(lambda part: not _PATTERN & set(part), parts))
    folders = fixed[:-1] if len(fixed) == len(parts) else fixed
    named = [each for each in (fixed, folders) if any(part != ".." for part in each)]
    try:
        return any(os.path.lexists(os.path.join(root, *each)) for each in named or [fixed])
    except ValueError:  # a zero byte
        return False


def _modules_in(folder: Path, piece: Piece, root: Path) -> list[str]:
    """Return the modules that a piece imports, and that are in a folder and not in the root."""
    there, here = OwnModules(folder), OwnModules(root)
    heads = dict.fromkeys(each.module.partition(".")[0] for each in imports_of(piece.tree))
    return [head for head in heads if head and _has(there, head) and not _has(here, head)]


def _has(modules: OwnModules, head: str) -> bool:
    try:
        return bool(modules.has(head)) or modules.is_folder(head)
    except OSError:  # a folder that cannot be read, or too long a name
        return False


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the paths that stand in code. ``place``: the file of the code, empty for cells."""

    place: str

    def paths(self, tree: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
        """Yield the outermost expressions that are paths, the call that each is for, the path."""
        yield from self._in(tree, "")

    def _in(self, node: ast.AST, call: str) -> Iterator[tuple[ast.expr, str, str]]:
        if isinstance(node, ast.expr):
            path = self.value(node)
            if path is not None:
                yield node, call, os.path.normpath(path) if path else ""
                return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        if isinstance(node, ast.Call):
            call = ast.unparse(node.func)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            call = "".join(map(ast.unparse, targets))
        for each in ast.iter_child_nodes(node):
            yield from self._in(each, call)

    def value(self, node: ast.expr) -> str | None:
        """Return the path that an expression is, up to where it is computed; None for none."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id="__file__") if self.place:
                return self.place
            case ast.JoinedStr(values=[ast.Constant(value=str(text)), *rest]):
                return self._folder(text) if rest else text
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._joined([left, right])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first, last = self.value(left), self.value(right)
                if first is None:
                    return None
                return self._folder(first) if last is None else first + last
            case ast.Attribute(value=inner, attr="parent"):
                path = self.value(inner)
                return None if path is None else self._parent(path)
            case ast.Call(func=func, args=args):
                return self._called(func, args)
        return None

    def _called(self, func: ast.expr, args: list[ast.expr]) -> str | None:
        words = ast.unparse(func).split(".")
        if words[-1] in ("cwd", "getcwd") and not args:
            return "."
        if words[-1] == "dirname" and args:
            path = self.value(args[0])
            return None if path is None else self._parent(path)
        if words[-1] in _KEEPS:
            inner = args[0] if args else func.value if isinstance(func, ast.Attribute) else None
            return None if inner is None else self.value(inner)
        if words[-1] in _JOINS and args:
            if words[-1] == "join" and "path" not in words:
                return None
            if words[-1] == "joinpath" and isinstance(func, ast.Attribute):
                args = [func.value, *args]
            return self._joined(args)
        return None

    def _joined(self, parts: list[ast.expr]) -> str | None:
        """Return paths put together, up to the first that is computed."""
        found: list[str] = []
        for each in parts:
            path = self.value(each)
            if path is None:
                break
            found.append(path)
        return os.path.join(*found) if found else None

    @staticmethod
    def _parent(path: str) -> str:
        normal = os.path.normpath(path)
        return ".." if normal == "." else os.path.normpath(os.path.join(normal, ".."))

    @staticmethod
    def _folder(text: str) -> str:
        """Return the folder of a path whose last part is computed."""
        return os.path.dirname(text) or "."
