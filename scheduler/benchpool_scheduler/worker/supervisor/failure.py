"""Description of a failure, from the last lines of a program's output: pure.

A notebook's runner prints the cell, the exception and the line; Python prints a traceback. The exit
code identifies signals, and the runner's last line identifies the cell in which they came.
"""

from __future__ import annotations

import re
import signal

TAIL = 32 * 1024
"""Bytes of the end of a log that are analysed."""

MOST = 200
"""Most characters of an exception that are quoted."""

TRACEBACK = "Traceback (most recent call last):"
LAUNCHERS = ("ChildFailedError", "ProcessRaisedException", "CalledProcessError", "SystemExit")
"""Exceptions that follow another failure, which was printed before."""

_CELL = re.compile(r"benchpool: (cell \d+) failed: (.+)")
_KERNEL = re.compile(r"benchpool: the kernel ended in (cell \d+) with exit code (\d+)")
_RAN = re.compile(r"benchpool: (?:the kernel ended in )?(cell \d+) (?:\(\d+ of \d+\)|by signal .+)")
_REFUSAL = re.compile(r"benchpool: ([A-Z]\w+: .+ \(.+, line \d+\))")
_NOT_RUN = re.compile(r"benchpool: (the notebook's .+)")
_IN_CELL = re.compile(r"(?:it )?(?:failed|was ended|ran out of memory) in cell (\d+)\b")
_PLACE = re.compile(r" \((?:(?P<file>[^()]+), )?line (?P<line>\d+)\)\.?$")
_FRAME = re.compile(r'\s*File "(.+)", line (\d+)')
_ERROR = re.compile(r"([A-Za-z_][\w.]*)(?:: (.*))?")
_LIBRARY = re.compile(r"<frozen |/(site|dist)-packages/|/lib/python3[.\d]*/")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SIGNALS = {
    signal.SIGSEGV: "it accessed invalid memory",
    signal.SIGBUS: "it accessed missing memory; often /dev/shm is full",
    signal.SIGABRT: "it aborted, as the C library and CUDA do after an error",
    signal.SIGFPE: "it divided an integer by zero",
    signal.SIGILL: "it was built for another processor",
    signal.SIGKILL: "it was killed, often by the operating system when memory is short",
    signal.SIGTERM: "it was asked to terminate",
    signal.SIGINT: "it was interrupted",
    signal.SIGXCPU: "it used more processor time than allowed",
    signal.SIGXFSZ: "it wrote a larger file than allowed",
}


def sentence(code: int, tail: bytes) -> str | None:
    """Return a description of the failure that follows a name, or None if unknown.

    >>> log = b'''Traceback (most recent call last):
    ...   File "/home/joe/train.py", line 12, in <module>
    ...     fit(data)
    ... ValueError: no such file'''
    >>> sentence(1, log)
    'failed with ValueError: no such file (train.py, line 12)'
    >>> sentence(1, b"benchpool: cell 3 failed: KeyError: 'a' (line 2)")
    "failed in cell 3 with KeyError: 'a' (line 2)"
    >>> sentence(139, b"")
    'was ended by SIGSEGV: it accessed invalid memory'
    >>> sentence(139, b"benchpool: the kernel ended in cell 7 by signal 11")
    'was ended in cell 7 by SIGSEGV: it accessed invalid memory'
    >>> sentence(5, b"benchpool: the kernel ended in cell 7 with exit code 5")
    'failed in cell 7: its Python ended with exit code 5'
    >>> sentence(3, b"bye") is None
    True
    """
    if code == 0:
        return None
    tail_lines = lines(tail)
    found = of_cell(tail_lines) or _of_refusal(tail_lines) or _of_traceback(tail_lines)
    known = _SIGNALS.get(signal.Signals(code - 128)) if code - 128 in set(signal.Signals) else None
    if found is None and known is not None:
        return f"was ended{in_cell(tail)} by {signal.Signals(code - 128).name}: {known}"
    return found


def in_cell(tail: bytes) -> str:
    r"""Return the last cell that ran, as ``" in cell 3"``; empty without a notebook.

    >>> in_cell(b"benchpool: cell 2 (1 of 2)\nbenchpool: cell 5 (2 of 2)\nloss 1\n")
    ' in cell 5'
    >>> in_cell(b"loss 1\n")
    ''
    """
    for line in reversed(lines(tail)):
        found = _RAN.match(line)
        if found is not None:
            return f" in {found[1]}"
    return ""


def lines(tail: bytes) -> list[str]:
    """Return the lines that are analysed, without colours."""
    return _COLOUR.sub("", tail[-TAIL:].decode(errors="replace")).splitlines()


def of_cell(lines: list[str]) -> str | None:
    """Return the failure of a notebook's cell as its runner printed it, or None."""
    for line in reversed(lines[-20:]):
        if found := _CELL.fullmatch(line):
            return f"failed in {found[1]} with {found[2][:MOST]}"
        if found := _KERNEL.fullmatch(line):
            return f"failed in {found[1]}: its Python ended with exit code {found[2]}"
        if found := _NOT_RUN.fullmatch(line):
            return f"failed before its first cell: {found[1][:MOST]}"
    return None


def place(description: str) -> dict[str, int | str]:
    """Return the location of a failure as data, from a sentence of this module.

    >>> place("failed in cell 3 with KeyError: 'a' (line 2)")
    {'cell': 3, 'line': 2}
    >>> place("failed with ValueError: no such file (train.py, line 12)")
    {'line': 12, 'file': 'train.py'}
    >>> place("it was ended in cell 7 by SIGSEGV: it accessed invalid memory")
    {'cell': 7}
    >>> place("was ended by SIGSEGV: it accessed invalid memory")
    {}
    """
    found: dict[str, int | str] = {}
    cell = _IN_CELL.match(description)
    if cell is not None:
        found["cell"] = int(cell[1])
    at = _PLACE.search(description)
    if at is not None:
        found["line"] = int(at["line"])
        if at["file"]:
            found["file"] = at["file"]
    return found


def _of_refusal(lines: list[str]) -> str | None:
    """Return the failure in a last line that benchpool's client printed, or None."""
    found = _REFUSAL.fullmatch(lines[-1]) if lines else None
    return f"failed with {found[1]}" if found is not None else None


class Traceback:
    """A printed traceback: the lines of its frames, and the line of its exception."""

    __slots__ = ("error", "frames")

    def __init__(self, frames: list[str], error: str) -> None:
        self.frames = frames
        self.error = error


def last_traceback(lines: list[str]) -> Traceback | None:
    """Return the last traceback that ended a program, without tracebacks of launchers."""
    begins = [at for at, line in enumerate(lines) if line.strip().endswith(TRACEBACK)]
    for begin in reversed(begins):
        frames: list[str] = []
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        for line in lines[begin + 1 :]:
            if _FRAME.match(line):
                frames.append(line)
            elif line[indent : indent + 1] not in {" ", "|", ""}:
                error = _ERROR.fullmatch(line[indent:].rstrip())
                if error is None or error[1].endswith(LAUNCHERS):
                    break
                return Traceback(frames, line[indent:].rstrip())
    return None


def _of_traceback(lines: list[str]) -> str | None:
    found = last_traceback(lines)
    if found is None:
        return None
    frames = [(match[1], match[2]) for match in map(_FRAME.match, found.frames) if match]
    return f"failed with {found.error[:MOST]}{_place(frames)}"


def _place(frames: list[tuple[str, str]]) -> str:
    """Return the location in the innermost file outside libraries."""
    own = [frame for frame in frames if not _LIBRARY.search(frame[0])] or frames
    if not own:
        return ""
    file, line = own[-1]
    return f" ({file.rpartition('/')[2]}, line {line})"
