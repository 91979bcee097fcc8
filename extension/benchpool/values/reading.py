"""Reads values from a folder written by ``writing``, one by one on access."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchpool.values import formats, pickles, plain, tensors
from benchpool.values.writing import DOCUMENT, VERSION

_FILE = re.compile(r"[0-9]{1,9}\.(npy|safetensors|arrow|pickle)")


class NotReadable(Exception):
    """A value cannot be read here; the text gives the reason."""


class StoredValues(Mapping[str, Any]):
    """Values of one document by name. Each is read on first access.

    Args:
        folder: Folder of the document; without a document there are no values.
        pickles: Whether pickles may be loaded, which runs code of their author.
        device: Device for tensors; None loads each to its original device.

    ``entries`` has for each name its ``type``, its ``form`` (``value``, ``state`` or ``pickle``)
    and its ``bytes``. ``left_out`` gives the reason for each missing name. ``returns``: the value
    of the last expression is the return value of the job.
    """

    def __init__(self, folder: Path, *, pickles: bool, device: str | None = None) -> None:
        document = _document(folder)
        self.entries: dict[str, dict[str, Any]] = document["names"]
        self.left_out: dict[str, str] = document["left_out"]
        self.returns: bool = document.get("returns", False)
        self.device = device
        self._python: str = document["python"]
        self._nodes: list[dict[str, Any]] = document["nodes"]
        self._folder = folder
        self._pickles = pickles
        self._made: dict[Any, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self.entries:
            raise KeyError(name)
        return self.value(self.entries[name]["value"])

    def __contains__(self, name: object) -> bool:
        return name in self.entries  # reads no value

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        kept = [f"{name}: {each['type']}" for name, each in self.entries.items()]
        lost = [f"not there: {why}" for why in self.left_out.values()]
        return f"<values {', '.join(kept) or 'none'}{''.join(f'; {each}' for each in lost)}>"

    # ------------------------------------------------------------------ for the formats

    def value(self, content: Any) -> Any:
        """Return the value for its JSON content. Raises NotReadable."""
        if not isinstance(content, dict):
            return content
        number = int(content["$"])
        if number not in self._made:
            self._make(number)
        return self._made[number]

    def path(self, name: str) -> Path:
        """Return the path of a file of the document."""
        if not _FILE.fullmatch(name):
            raise NotReadable(f"The document names a file {name!r}, which it cannot have.")
        return self._folder / name

    def tensor(self, node: Mapping[str, Any]) -> Any:
        """Return the tensor of a node; equal nodes return the same tensor."""
        place = (node["file"], node.get("key"))
        if place not in self._made:
            self._made[place] = tensors.read_numbers(dict(node), self.path(node["file"]))
        return self._made[place]

    # ------------------------------------------------------------------ nodes

    def _make(self, number: int) -> None:
        node = self._nodes[number]
        kind = node["kind"]
        if kind == "pickle":
            self._made[number] = self._pickled(node["file"])[node["key"]]
        elif kind in plain.SCALARS_BY_NAME:
            self._made[number] = plain.SCALARS_BY_NAME[kind].read(node["value"])
        elif kind in plain.CONTAINERS_BY_NAME:
            self._fill(number, node, plain.CONTAINERS_BY_NAME[kind])
        elif kind in formats.FORMATS_BY_NAME:
            self._made[number] = formats.FORMATS_BY_NAME[kind].read(node, self)
        else:
            raise NotReadable(f"The document has a value of the unknown type {kind!r}.")

    def _fill(self, number: int, node: Mapping[str, Any], container: plain.ContainerKind) -> None:
        made = None
        if container.empty is not None:  # it may contain itself
            made = self._made[number] = container.empty(node.get("more"))
        items = [
            [self.value(part) for part in each] if isinstance(each, list) else self.value(each)
            for each in node["items"]
        ]
        self._made[number] = container.fill(made, items)

    def _pickled(self, file: str) -> Any:
        if not self._pickles:
            raise NotReadable(
                "This value is a pickle, and loading a pickle runs code of its author. Only the "
                "user who sent the job can load it."
            )
        here = f"{sys.version_info[0]}.{sys.version_info[1]}"
        if here != self._python:
            raise NotReadable(
                f"This value was pickled by Python {self._python}, and this is Python {here}. Read "
                f"it with Python {self._python}."
            )
        if file not in self._made:
            self._made[file] = pickles.load(self.path(file), self.device)
        return self._made[file]


def _document(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / DOCUMENT).read_text("utf-8")
    except FileNotFoundError:
        return {"names": {}, "left_out": {}, "nodes": [], "python": ""}
    document: dict[str, Any] = json.loads(text)
    if document["version"] != VERSION:
        raise NotReadable(
            f"The values in {folder} were written by another version of benchpool. Read them "
            "with that version."
        )
    return document
