"""Detection of code that uses files above the folder that is sent. The job does not have them."""

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
"""Functions that return their path argument, possibly normalised."""
_FOLDERS = frozenset({"chdir", "listdir", "walk", "scandir", "iterdir"})
"""Functions for which the parent folder alone is a use of its content."""
_PATTERN = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class SentFolder:
    """Folder that is sent.

    Attributes:
        root: Its path here. The job runs in a copy of it.
        code: Path of the submitted file, relative to it.
    """

    root: Path
    code: str


def uses(
    piece: Piece, sent: SentFolder, commands: Iterable[tuple[int, str]] = ()
) -> Iterator[tuple[int, str]]:
    """Yield line and text of each use of an existing file or folder above the sent folder.

    Relative paths start at the current folder, which is the root both here and in the job.

    Args:
        commands: Lines of the piece, from 1, that a shell or a magic reads.
    """
    reported: set[str] = set()
    named = (_named(line, it) for line, text in commands for it in shell_paths.of_command(text))
    for each in chain(_paths(piece, sent), named):
        if not each.path.startswith("..") or each.path in reported:
            continue
        if each.imports:
            modules = _modules_in(sent.root / each.path, piece, sent.root)
            what = f"{', '.join(f'`{name}`' for name in modules)} in `{each.path}`"
            used = bool(modules)
        else:
            what, used = f"`{each.path}`", each.is_used and _is_there(sent.root, each.path)
        if used:
            reported.add(each.path)
            yield each.line, _text(what, each, sent)


def modules_on_path(pieces: Sequence[Piece], root: Path) -> frozenset[str]:
    """Return the modules that pieces import from folders that they add to ``sys.path``.

    Args:
        root: Folder where the code runs.
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
    """Path in code.

    Attributes:
        imports: Whether it is added to ``sys.path``.
        is_used: Whether it is more than ``..``, or is read as a folder.
        by_file: Whether it starts at the file of the code, independent of the current folder.
    """

    line: int
    path: str
    imports: bool
    is_used: bool
    by_file: bool


def _named(line: int, found: NamedPath) -> _UsedPath:
    return _UsedPath(line, found.path, imports=False, is_used=found.is_used, by_file=False)


def _paths(piece: Piece, sent: SentFolder) -> Iterator[_UsedPath]:
    """Yield the paths in a piece. Code that is nested too deeply ends the search."""
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
        f"{what} is above the folder {sent.root.name or '/'} and is not sent with the job: "
        f"{how}{'' if used.by_file else change}"
    )


def _below(path: str) -> PurePosixPath:
    """Return the part of a path after its ``..``."""
    return PurePosixPath(*[part for part in PurePosixPath(path).parts if part != ".."])


def _is_there(root: Path, path: str) -> bool:
    """Return whether a file exists, or the folder that it would be written to.

    For a pattern (``*.csv``) the folder before it counts.
    """
    parts = PurePosixPath(path).parts
    fixed = list(takewhile(lambda part: not _PATTERN & set(part), parts))
    folders = fixed[:-1] if len(fixed) == len(parts) else fixed
    named = [each for each in (fixed, folders) if any(part != ".." for part in each)]
    try:
        return any(os.path.lexists(os.path.join(root, *each)) for each in named or [fixed])
    except ValueError:  # a null byte
        return False


def _modules_in(folder: Path, piece: Piece, root: Path) -> list[str]:
    """Return the imported modules of a piece that are in a folder and not in the root."""
    there, here = OwnModules(folder), OwnModules(root)
    heads = dict.fromkeys(each.module.partition(".")[0] for each in imports_of(piece.tree))
    return [head for head in heads if head and _has(there, head) and not _has(here, head)]


def _has(modules: OwnModules, head: str) -> bool:
    try:
        return bool(modules.has(head)) or modules.is_folder(head)
    except OSError:  # an unreadable folder, or a name that is too long
        return False


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of path expressions in code. ``place``: path of the code's file, empty for cells."""

    place: str

    def paths(self, tree: ast.AST) -> Iterator[tuple[ast.expr, str, str]]:
        """Yield the outermost path expressions, the call or target of each, and the path."""
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
        """Return the path of an expression, up to its first computed part. None for no path."""
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
        """Return the joined paths, up to the first computed one."""
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
        """Return the folder of a path with a computed last part."""
        return os.path.dirname(text) or "."
