"""Paths named by shell commands and magics. Pure."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

CALLS = frozenset(
    {
        *("system", "popen", "Popen", "run", "call", "check_call", "check_output"),
        *("getoutput", "getstatusoutput", "run_line_magic", "run_cell_magic"),
    }
)
"""Functions that pass a text to a shell or to IPython."""

_OF_FOLDERS = frozenset(
    {"cd", "pushd", "ls", "ll", "find", "tree", "du", "cp", "mv", "rsync", "tar", "zip", "ln"}
)
"""Commands for which the parent folder alone is a use of its content."""

_ENDS = frozenset([";", "|", "||", "&", "&&", "(", ")"])
_COMPUTED = re.compile(r"[${`]")


@dataclass(frozen=True, slots=True)
class NamedPath:
    """Path named by a command, up to its first computed part. ``is_used``: not just ``..``."""

    path: str
    is_used: bool


def of_command(command: str) -> Iterator[NamedPath]:
    """Yield the paths above the folder that a line for a shell or a magic names.

    >>> [it.path for it in of_command("cat ../a > ../b/$name.txt && tool --in=../c d/e")]
    ['../a', '../b', '../c']
    """
    program = ""
    for word in _words(command):
        if word in _ENDS:
            program = ""
            continue
        program = program or word
        for part in dict.fromkeys([word, word.partition("=")[2]]):
            path = _path(part)
            if path is not None:
                bare = not [each for each in path.split("/") if each != ".."]
                yield NamedPath(path, not bare or program in _OF_FOLDERS)


def of_call(node: ast.Call) -> Iterator[NamedPath]:
    """Yield the paths above the folder in texts that a call passes to a shell or to IPython."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    called = node.func.id if isinstance(node.func, ast.Name) else called
    if called in CALLS:
        texts = [_text(each) for each in node.args]
        if called == "run_line_magic" and len(texts) == 2:
            texts = [" ".join(texts)]
        for text in texts:
            for line in text.split("\n"):
                if " " in line.strip():  # a single word is already a path
                    yield from of_command(line)


def _text(node: ast.expr) -> str:
    """Return a text with ``{}`` for computed parts. Empty if it is not a text."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or "{}" for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _words(command: str) -> list[str]:
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    try:
        return list(reader)
    except ValueError:  # an unclosed quotation mark
        return command.split()


def _path(word: str) -> str | None:
    """Return a word as a path if it is above the folder."""
    computed = _COMPUTED.search(word)
    if computed is not None:
        word = os.path.dirname(word[: computed.start()])
    path = os.path.normpath(word) if word else ""
    return path if path.split("/")[0] == ".." else None
