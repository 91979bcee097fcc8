"""Files that shell commands write and read, as far as their words show."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchpool.cells import expressions, magic_calls
from benchpool.cells.magic_calls import MagicCall
from benchpool.cells.magic_meanings import words as set_of
from benchpool.cells.substitution import expressions_in, names_in

SHORTEST = 3
"""Minimum length of a string that counts as a file name, in characters."""

CALL_WORDS = set_of(
    """system getoutput popen run call check_call check_output Popen run_line_magic run_cell_magic
    chdir"""
)
"""Last words of the calls that ``of_call`` knows."""

_COMMANDS = frozenset(["os.system", "os.popen"])
_PLACES = frozenset(["os.chdir", "sys.path.append", "sys.path.insert"])
_LIKE_PROGRAMS = set_of("cd pushd mkdir cp mv cat ls ll less more rm rmdir tail head")
_SCRIPTS = frozenset(["bash", "sh", "zsh", "script"])
_FIELD = re.compile(r"\{[^{}]*\}|\$[A-Za-z_][\w.]*")
_PLACEHOLDER = re.compile("\0(\\d+)\0")
_ENDS = re.compile(r"&&|\|\||[;|\n]")
_REDIRECTED = re.compile(r"\d?&?(>>?|<)\s*([^\s>&|;]+)")
_TO_CHANNEL = re.compile(r"\d?>&\d?-?")
_NUMBER = re.compile(r"[\d.,:-]+")
_BEFORE = frozenset(["sudo", "time", "nohup", "env", "exec"])
_SILENT = frozenset(["echo", "printf", "export", "rm", "rmdir", "kill", "sleep", "pip", "conda"])


@dataclass(frozen=True, slots=True)
class FileUse:
    """Call that writes or reads a file, with the strings and names that its path is made of.

    ``held`` are the strings that the names hold, as far as the cells show (``name = 'a.py'``).
    """

    writes: bool
    texts: frozenset[str]
    names: frozenset[str]
    is_folder: bool = False
    lists: bool = False
    held: frozenset[str] = frozenset()

    def meets(self, other: FileUse) -> bool:
        """Return whether both may mean one file: by a common string, or else by a name."""
        if self.texts and other.texts:
            return not self.texts.isdisjoint(other.texts)
        if self.lists and not self.texts and not self.names:  # of the current folder
            return all("/" not in each for each in other.texts)
        if not (self.texts | self.held).isdisjoint(other.texts | other.held):
            return True
        return not self.names.isdisjoint(other.names)

    def lies_in(self, folder: FileUse) -> bool:
        """Return whether this may be in a folder: by the start of its string, or by a name."""
        for text in folder.texts:
            if any(each == text or each.startswith(f"{text.rstrip('/')}/") for each in self.texts):
                return True
        return not folder.texts and not self.names.isdisjoint(folder.names)


def of_call(node: ast.Call, imports: Mapping[str, str]) -> list[FileUse]:
    """Return the files that a call of the shell, of a magic or of another program uses.

    Args:
        node: The call.
        imports: Dotted names by the names under which the notebook imports them.
    """
    called = magic_calls.magic_call(node)
    if called is not None:
        return _of_magic(called)
    chain = expressions.chain_of(node.func)
    path = ".".join([imports.get(chain[0], chain[0]), *chain[1:]]) if chain else ""
    if path in _PLACES:
        return [each for value in node.args for each in of_word(_text_of(value), writes=False)]
    if path not in _COMMANDS and not path.startswith("subprocess."):
        return []
    given = node.args[0] if node.args else None
    if isinstance(given, ast.List | ast.Tuple):
        return of_command(" ".join(map(_text_of, given.elts)))
    return of_command(_text_of(given)) if given is not None else []


def _of_magic(called: MagicCall) -> list[FileUse]:
    if called.name is None:
        exact = called.exact or not called.node.args
        return of_command(called.line if exact else _text_of(called.node.args[0]))
    if called.name in _SCRIPTS and called.body is not None:
        return [*of_command(f"{called.name} {called.line}"), *of_command(called.body, fields=False)]
    if called.name in {"sx", "system", "!"}:
        return of_command(called.body or called.line)
    if called.name == "run":
        return of_command(f"python {called.line}")
    return of_command(f"{called.name} {called.line}") if called.name in _LIKE_PROGRAMS else []


def of_command(text: str, *, fields: bool = True) -> list[FileUse]:
    """Return the files that a shell command uses; ``fields``: IPython fills in its fields.

    >>> found = of_command("mkdir -p out && python made.py {path} > out/log.txt")
    >>> [(each.writes, *each.texts, *each.names) for each in found]
    [(True, 'out'), (True, 'out/log.txt'), (False, 'made.py'), (False, 'path')]
    """
    held: list[str] = []

    def hold(found: re.Match[str]) -> str:
        held.append(found.group())
        return f"\0{len(held) - 1}\0"

    if fields:
        text = _FIELD.sub(hold, text)
    made: list[FileUse] = []
    for command in _ENDS.split(_TO_CHANNEL.sub(" ", text)):
        for sign, target in _REDIRECTED.findall(command):
            made += of_word(_whole(target, held), writes=sign != "<")
        words = [_whole(each, held) for each in _words(_REDIRECTED.sub(" ", command))]
        while words and (words[0] in _BEFORE or re.match(r"\w+=", words[0])):
            words.pop(0)
        if words:
            made += _of_program(words[0].rpartition("/")[2], words)
    return made


def of_word(word: str, *, writes: bool, is_folder: bool = False) -> list[FileUse]:
    """Return a word of a command as a file, with its strings and the names in its fields."""
    texts = [each.removeprefix("./") for each in _FIELD.sub("\0", word).split("\0")]
    if len(texts) == 1:
        texts = [texts[0].rstrip("/")]
    fields = [each for field in _FIELD.findall(word) for each in expressions_in(field)]
    file_texts = frozenset(
        each for each in texts if len(each) >= SHORTEST and not _NUMBER.fullmatch(each)
    )
    names = names_in(fields)
    return [FileUse(writes, file_texts, names, is_folder)] if file_texts or names else []


def _whole(word: str, held: Sequence[str]) -> str:
    return _PLACEHOLDER.sub(lambda found: held[int(found.group(1))], word)


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, comments=True)
    except ValueError:
        return command.split()


def _of_program(program: str, words: Sequence[str]) -> Iterator[FileUse]:
    plain = [word for word in words[1:] if not word.startswith("-")]
    written: list[str] = []
    read: list[str] = []
    match program:
        case "mkdir":
            for word in plain:
                yield from of_word(word, writes=True, is_folder=True)
        case "touch" | "tee":
            written = plain
        case "wget":
            written = _after(words, "-O", "--output-document") or _last_parts(plain)
        case "curl":
            taken = any(re.fullmatch(r"-\w*O|--remote-name", word) for word in words)
            written = _after(words, "-o", "--output") or (_last_parts(plain) if taken else [])
        case "git" if plain[:1] == ["clone"]:
            written = _cloned(plain[1:])
        case "cp" | "mv" | "ln" | "rsync":
            read, written = plain[:-1], plain[-1:]
        case "unzip" | "tar":
            read, written = plain[:1], _after(words, "-d", "-C", "--directory")
        case _ if program in _SILENT:
            return
        case _:
            options = [word.partition("=")[2] for word in words if word.startswith("--")]
            here = [words[0]] if "/" in words[0] else []
            read = [*here, *plain, *filter(None, options)]
    for word in written:
        yield from of_word(word, writes=True)
    for word in read:
        yield from of_word(word, writes=False)


def _after(words: Sequence[str], *options: str) -> list[str]:
    """Return the values of options: ``-O name``, ``-qO name``, ``--output=name``."""
    found: list[str] = []
    short = [each[1] for each in options if not each.startswith("--")]
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word in options or any(re.fullmatch(rf"-\w*{each}", word) for each in short):
            found += [following] if following else []
        found += [word.partition("=")[2] for each in options if word.startswith(f"{each}=")]
    return found


def _cloned(words: Sequence[str]) -> list[str]:
    """Return the folder of ``git clone``: the word after the address, or its last part."""
    found = [number for number, word in enumerate(words) if "/" in word or ":" in word][:1]
    last = [words[number] for number in found]
    given = [word for number in found for word in words[number + 1 : number + 2]]
    return given or [each.removesuffix(".git") for each in _last_parts(last)]


def _last_parts(places: Sequence[str]) -> list[str]:
    """Return the last part of addresses: the name under which a download is stored."""
    return [re.split(r"[?#]", each)[0].rstrip("/").rpartition("/")[2] for each in places]


def _text_of(node: ast.expr) -> str:
    """Return an expression as a shell line with fields: ``f"cp {a}"`` as ``cp {a}``."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text_of, node.values))
    if isinstance(node, ast.FormattedValue):
        return _text_of(node.value) if isinstance(node.value, ast.Constant) else _field(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text_of(node.left) + _text_of(node.right)
    return _field(node)


def _field(node: ast.expr) -> str:
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    return "".join(f"{{{each}}}" for each in names)
