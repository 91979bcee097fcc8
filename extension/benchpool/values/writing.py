"""Writes values into a folder: the document and its files."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from benchpool.values import formats, pickles, plain, untravelled
from benchpool.values.tensors import TensorFile
from benchpool.values.untravelled import CannotTravel, TooLargeToTravel

DOCUMENT = "values.json"
CONTENTS = "contents.json"
"""List of the stored and missing values without their content, for tools that only list them."""
VERSION = 1


class DocumentWriter:
    """Writer of one document.

    Args:
        folder: An empty folder.
        pickle: Values without a safe format are pickled together.
        states: For a model or an optimizer the state is written, unless it may be pickled whole.
    """

    def __init__(self, folder: Path, *, pickle: bool = False, states: bool = False) -> None:
        self.states = states and not pickle
        self.folder = folder
        self._pickle = pickle
        self._left: int | None = None
        self._nodes: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[Any] = []
        self._open: list[int] = []
        self._where: list[str] = []
        self._files: list[Path] = []
        self._names: dict[str, dict[str, Any]] = {}
        self._left_out: dict[str, str] = {}
        self._to_pickle: dict[str, Any] = {}
        self.tensors = TensorFile(self)

    def add(self, name: str, value: Any, *, quiet: bool = False) -> None:
        """Write a value under a name. A value that cannot be written leaves no files behind.

        With ``quiet`` such a value is neither pickled nor reported.
        """
        marks = len(self._nodes), len(self._files), self._left
        self._where = [name]
        try:
            content = self.encode(value)
            self.tensors.flush()
        except (CannotTravel, RecursionError, OSError, MemoryError) as failed:
            self._take_back(*marks)
            if not quiet:
                self._not_written(name, value, failed)
            return
        self._names[name] = self._entry(value, content, marks[1])

    def _not_written(self, name: str, value: Any, failed: BaseException) -> None:
        safe_only = not self._pickle or isinstance(failed, TooLargeToTravel)
        if isinstance(failed, CannotTravel) and not safe_only:
            self._to_pickle[name] = value
        else:
            self._left_out[name] = _reason(name, failed)

    def bound(self, most: int | None) -> None:
        """Limit the total size of all files written from now on, in bytes; None for no limit."""
        self._left = most

    def leave_out(self, name: str, why: str) -> None:
        """Record that a name is missing, and why."""
        self._left_out[name] = why

    def finish(self, **more: Any) -> dict[str, Any]:
        """Pickle the remaining values, write both files with ``more``, and return the document."""
        if self._to_pickle:
            self._pickle_all()
        document = {
            "version": VERSION,
            "python": f"{sys.version_info[0]}.{sys.version_info[1]}",
            "names": self._names,
            "left_out": self._left_out,
            "nodes": self._nodes,
            **more,
        }
        short = {"names": self._names, "left_out": self._left_out, **more}
        for file, content in ((CONTENTS, short), (DOCUMENT, document)):
            aside = self.folder / f".{file}"
            aside.write_text(json.dumps(content), "utf-8")
            os.replace(aside, self.folder / file)
        return document

    # ------------------------------------------------------------------ for the formats

    def encode(self, value: Any, step: str = "") -> Any:
        """Return a value as JSON: itself, or ``{"$": number of its node}``. Raises CannotTravel.

        ``step`` is the Python expression from the containing value to this one.
        """
        kind = type(value)
        if kind in plain.INLINE or (kind is int and -plain.LONG < value < plain.LONG):
            return value
        known = self._numbers.get(id(value))
        if known is not None:
            if known in self._open:
                raise CannotTravel(self._here(step), "a value that contains itself")
            return {"$": known}
        self._where.append(step)
        number = len(self._nodes)
        self._nodes.append({})
        self._numbers[id(value)] = number
        self._alive.append(value)  # otherwise its ID may be reused
        self._nodes[number].update(self._node(value, number))
        self._where.pop()
        return {"$": number}

    def file(self, suffix: str) -> Path:
        """Return the path of a new file of the document."""
        path = self.folder / f"{len(self._files)}.{suffix}"
        self._files.append(path)
        return path

    def count(self, size: int) -> None:
        """Count bytes before they are written. Raises CannotTravel beyond the limit."""
        if self._left is None:
            return
        if size > self._left:
            raise TooLargeToTravel(self._here(""), size, self._left)
        self._left -= size

    def cannot(self, why: str) -> CannotTravel:
        """Return the error for the value that is being written."""
        return CannotTravel(self._here(""), why)

    # ------------------------------------------------------------------ nodes

    def _node(self, value: Any, number: int) -> dict[str, Any]:
        kind = type(value)
        scalar, container = plain.SCALARS.get(kind), plain.CONTAINERS.get(kind)
        try:
            if scalar is not None:
                return {"kind": plain.name_of(kind), "value": scalar.write(value)}
            if container is not None:
                return self._held(value, number, container)
        except TypeError as bad:
            raise self.cannot(f"a value that cannot be written: {bad}") from bad
        for each in formats.FORMATS:
            if each.takes(value, self):
                return {"kind": each.name, **each.write(value, self)}
        never = untravelled.find(self._here(""), value)
        if never is not None:
            raise CannotTravel(*never)
        raise self.cannot(untravelled.no_format(value, pickle=self._pickle))

    def _held(self, value: Any, number: int, container: plain.ContainerKind) -> dict[str, Any]:
        made: dict[str, Any] = {"kind": plain.name_of(type(value))}
        more = container.more(value)
        if more is not None:
            made["more"] = more
        if container.empty is None:
            self._open.append(number)
        items, is_pairs = [], isinstance(value, dict) or hasattr(value, "__dict__")
        for place, item in enumerate(container.items(value)):
            if is_pairs:
                key, inner = item
                items.append([self.encode(key), self.encode(inner, untravelled.step(value, key))])
            else:
                items.append(self.encode(item, f"[{place}]"))
        if container.empty is None:
            self._open.remove(number)
        return {**made, "items": items}

    def _entry(self, value: Any, content: Any, first_file: int, how: str = "") -> dict[str, Any]:
        node = self._nodes[content["$"]] if isinstance(content, dict) else {}
        return {
            "value": content,
            "type": untravelled.kind_of(value),
            "form": how or ("state" if node.get("kind") == "state" else "value"),
            "bytes": sum(path.stat().st_size for path in self._files[first_file:]),
        }

    def _here(self, step: str) -> str:
        return "".join([*self._where, step])

    def _take_back(self, nodes: int, files: int, left: int | None) -> None:
        del self._nodes[nodes:]
        self._numbers = {key: number for key, number in self._numbers.items() if number < nodes}
        del self._alive[nodes:]
        for path in self._files[files:]:
            path.unlink(missing_ok=True)
        del self._files[files:]
        self._open.clear()
        self.tensors.forget()
        self._left = left

    # ------------------------------------------------------------------ pickles

    def _pickle_all(self) -> None:
        """Pickle values together, so that shared objects stay shared; record failures."""
        for name, value in list(self._to_pickle.items()):
            found = untravelled.find(name, value)
            if found is not None:
                self._left_out[name] = f"{found[0]} is {found[1]}"
                del self._to_pickle[name]
        try:
            self._dump(self._to_pickle)
        except CannotTravel:
            for name, value in self._to_pickle.items():
                try:
                    self._dump({name: value})
                except CannotTravel as failed:
                    self._left_out[name] = _reason(name, failed)

    def _dump(self, values: dict[str, Any]) -> None:
        if not values:
            return
        marks = len(self._nodes), len(self._files), self._left
        self._where = [", ".join(values)]
        try:
            file = pickles.dump(values, self)
        except CannotTravel:
            self._take_back(*marks)
            raise
        size = self._files[-1].stat().st_size
        for name, value in values.items():
            self._nodes.append({"kind": "pickle", "file": file, "key": name})
            entry = self._entry(value, {"$": len(self._nodes) - 1}, len(self._files), "pickle")
            self._names[name] = {**entry, "bytes": size}
            size = 0  # counted once
            self._alive.append(value)


def _reason(name: str, failed: BaseException) -> str:
    if isinstance(failed, CannotTravel):
        return f"{failed.where or name} is {failed.why}"
    if isinstance(failed, RecursionError):
        return f"{name} is nested too deeply"
    return f"{name} could not be written: {type(failed).__name__}: {failed}"
