"""The corpus of notebooks and idioms, and the cells that a selection includes."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchpool.cells import KnownBeside, NotebookCell, choose
from benchpool.kernel.answer import KernelAnswer, NameFacts

CORPUS = Path(__file__).parents[2] / "extension" / "cells" / "corpus"
TRACED = CORPUS / "traced.json"
ASKED = CORPUS / "asked.json"
CELL, TRAINING, IDIOM = "# %%", "# %% train", "# == "

Verdict = Literal["equal", "told", "silently different"]


@dataclass(frozen=True, slots=True)
class Text:
    """Notebook or idiom: its cells, and the numbers of the cells that are selected, each alone."""

    name: str
    cells: tuple[str, ...]
    selected: tuple[int, ...]
    is_notebook: bool


@dataclass(frozen=True, slots=True)
class Traced:
    """Trace of a run: the cells that each selected cell needs, and the seconds of each cell."""

    needs: dict[int, frozenset[int]]
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """One selection: the included cells above it, the needed cells and the number of warnings."""

    text: Text
    selected: int
    taken: frozenset[int]
    needed: frozenset[int]
    seconds: tuple[float, ...]
    warnings: int

    @property
    def verdict(self) -> Verdict:
        if self.needed <= self.taken:
            return "equal"
        return "told" if self.warnings else "silently different"


@functools.cache
def texts() -> tuple[Text, ...]:
    """Return all texts: notebooks by file name, idioms by topic and title."""
    return (*_notebooks(), *_idioms())


def digest_of(text: Text) -> str:
    """Return the digest of a text, which links a trace to its text."""
    whole = json.dumps([text.cells, text.selected])
    return hashlib.sha256(whole.encode()).hexdigest()[:12]


@functools.cache
def traces() -> dict[str, Traced]:
    """Return the trace of each text.

    Raises:
        ValueError: A text was changed after its run.
    """
    stored = json.loads(TRACED.read_text("utf-8"))
    known = {each.name: digest_of(each) for each in texts()}
    stale = {name for name, digest in known.items() if stored.get(name, {}).get("digest") != digest}
    if stale or stored.keys() - known.keys():
        wrong = sorted({*stale, *(stored.keys() - known.keys())})
        raise ValueError(f"run python benchmarks/trace_cells.py again, for {', '.join(wrong)}")
    return {
        name: Traced(
            {int(number): frozenset(found) for number, found in each["needs"].items()},
            tuple(each["seconds"]),
        )
        for name, each in stored.items()
    }


@functools.cache
def answers() -> dict[str, KernelAnswer]:
    """Return the kernel's answer about the names of each text, after its cells had run in order.

    Raises:
        ValueError: A text was changed after its run.
    """
    stored = json.loads(ASKED.read_text("utf-8"))
    stale = [t.name for t in texts() if stored.get(t.name, {}).get("digest") != digest_of(t)]
    if stale:
        raise ValueError(f"run python benchmarks/trace_cells.py again, for {', '.join(stale)}")
    return {text.name: _answer(text, stored[text.name]["names"]) for text in texts()}


def _answer(text: Text, names: dict[str, Any]) -> KernelAnswer:
    found = {
        name: NameFacts(number, kind, fixed, walked, 0, None, None, None, shares)
        for number, (name, (kind, fixed, walked, shares)) in enumerate(names.items())
    }
    ran = text.cells if text.is_notebook else text.cells[:-1]
    return KernelAnswer(found, list(ran), 1, 0.0)


def compared(*, with_kernel: bool = False) -> Iterator[Compared]:
    """Yield the comparison with its trace for each selection of the corpus."""
    for text in texts():
        trace = traces()[text.name]
        for number in text.selected:
            kernel = answers()[text.name] if with_kernel else None
            yield compare(text, number, trace, kernel)


def compare(
    text: Text, selected: int, trace: Traced, kernel: KernelAnswer | None = None
) -> Compared:
    """Choose the cells for one selection and compare them with the trace."""
    cells = [
        NotebookCell(str(number), source, number == selected)
        for number, source in enumerate(text.cells)
    ]
    answer = choose(cells, seen=KnownBeside(kernel))
    taken = frozenset(each.index for each in answer.cells if each.included) - {selected}
    return Compared(
        text, selected, taken, trace.needs[selected], trace.seconds, len(answer.problems)
    )


def _notebooks() -> Iterator[Text]:
    for path in sorted((CORPUS / "notebooks").glob("*.txt")):
        yield _text(path.stem, path.read_text("utf-8"), is_notebook=True)


def _idioms() -> Iterator[Text]:
    for path in sorted((CORPUS / "idioms").glob("*.txt")):
        for part in path.read_text("utf-8").split(IDIOM)[1:]:
            title, _, body = part.partition("\n")
            yield _text(f"{path.stem}: {title.strip()}", body, is_notebook=False)


def _text(name: str, body: str, *, is_notebook: bool) -> Text:
    cells: list[list[str]] = [[]]
    selected = []
    for line in body.rstrip("\n").split("\n"):
        if line in {CELL, TRAINING}:
            cells.append([])
            if line == TRAINING:
                selected.append(len(cells) - 1)
        else:
            cells[-1].append(line)
    chosen = tuple(selected) if is_notebook else (len(cells) - 1,)
    return Text(name, tuple("\n".join(each) for each in cells), chosen, is_notebook)
