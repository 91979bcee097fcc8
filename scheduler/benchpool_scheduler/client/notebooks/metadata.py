"""Metadata of a notebook and its cells that are sent with a job. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from benchpool_scheduler.errors import TooLarge

Metadata = Mapping[str, Any]

OF_A_RUN = frozenset(
    {
        *("execution", "ExecuteTime", "papermill", "widgets", "benchpool", "trusted", "signature"),
        *("orig_nbformat", "orig_nbformat_minor"),
    }
)
"""Names of metadata of one run, of the sender's machine, or of a conversion."""

MOST_BYTES = 1 << 20
"""Limit for the metadata of a notebook and of all its cells together, in bytes of JSON."""

MOST_NESTED = 100
"""Limit of nesting of lists and objects. Deeper entries are not sent."""

PYTHON = {"name": "python3", "display_name": "Python 3", "language": "python"}
"""Default kernel of a notebook that names none."""


def lasting(metadata: object) -> dict[str, Any]:
    """Return metadata without the entries of a run: times, progress, widgets, own marks.

    A value that is not an object counts as empty. Numbers that JSON does not support (NaN) become
    null.

    >>> lasting({"slideshow": {"slide_type": "slide"}, "execution": {"iopub.status.busy": "…"}})
    {'slideshow': {'slide_type': 'slide'}}
    """
    if not isinstance(metadata, Mapping):
        return {}
    kept = {}
    for name, value in metadata.items():
        try:
            if name not in OF_A_RUN:
                kept[str(name)] = _plain(value, MOST_NESTED)
        except _TooDeepError:
            continue
    return kept


def lasting_of_cell(metadata: object) -> dict[str, Any]:
    """Return the lasting metadata of a cell without its tags, which are a separate field."""
    return {name: value for name, value in lasting(metadata).items() if name != "tags"}


def tags_of(metadata: object) -> tuple[str, ...]:
    """Return the tags in the metadata of a cell. A value that is not a list has none.

    >>> tags_of({"tags": ["parameters", 3]}), tags_of({"tags": "parameters"}), tags_of([])
    (('parameters',), (), ())
    """
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    if not isinstance(tags, list):
        return ()
    return tuple(dict.fromkeys(each for each in tags if isinstance(each, str)))


def named(metadata: Metadata) -> dict[str, Any]:
    """Return the metadata of a notebook with kernel and language, which the format requires.

    >>> named({"kernelspec": {"name": "torch"}, "title": "Diffusion"})["kernelspec"]
    {'display_name': 'torch', 'language': 'python', 'name': 'torch'}
    """
    spec, language = metadata.get("kernelspec"), metadata.get("language_info")
    if isinstance(spec, dict) and isinstance(spec.get("name"), str) and spec["name"]:
        shown = spec.get("display_name")
        spec = {"display_name": spec["name"], "language": "python"} | spec
        spec |= {} if isinstance(shown, str) else {"display_name": spec["name"]}
    else:
        spec = PYTHON
    language = language if isinstance(language, dict) else {}
    language = language if isinstance(language.get("name"), str) else {"name": "python"}
    return {"kernelspec": spec, "language_info": language} | {
        name: value
        for name, value in metadata.items()
        if name not in ("kernelspec", "language_info")
    }


def check_metadata(metadata: Metadata, cells: Iterable[Metadata]) -> None:
    """Check the size of the metadata that are sent.

    Args:
        metadata: Metadata of the notebook.
        cells: Metadata of its cells, in order.

    Raises:
        TooLarge: The metadata exceed the limit. The message names the largest entries and
            their place.
    """
    found: dict[tuple[str, str], list[tuple[str, int]]] = {}
    places = [("metadata", metadata, "the notebook")]
    places += [("cells", each, f"cell {n}") for n, each in enumerate(cells, 1)]
    for field, entries, of in places:
        for name, value in entries.items():
            found.setdefault((field, name), []).append((of, len(json.dumps([name, value]))))
    sizes = {key: sum(size for _, size in those) for key, those in found.items()}
    if (total := sum(sizes.values())) <= MOST_BYTES:
        return
    field, name = largest = max(sizes, key=sizes.__getitem__)
    those = found[largest]
    of = those[0][0] if len(those) == 1 else f"{len(those)} cells"
    raise TooLarge(
        f"The metadata of the notebook have {_kib(total)} KiB; the limit is {_kib(MOST_BYTES)} "
        f"KiB. Remove `{name[:100]}` of {of} ({_kib(sizes[largest])} KiB), in JupyterLab under "
        "Property Inspector, Advanced Tools.",
        field=field,
        numbers={"bytes": total, "limit": MOST_BYTES},
    )


def _kib(size: int) -> int:
    return (size + 1023) >> 10


class _TooDeepError(Exception):
    """Entry that is nested too deeply."""


def _plain(value: object, levels: int) -> object:
    """Return a value in JSON form. Errors: _TooDeepError."""
    if isinstance(value, Mapping | list):
        if levels == 0:
            raise _TooDeepError
        if isinstance(value, list):
            return [_plain(each, levels - 1) for each in value]
        return {str(name): _plain(each, levels - 1) for name, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
