"""Print the results of ``benchpool bench time``, and return its exit status."""

from __future__ import annotations

import json as codec
from collections.abc import Callable, Mapping, Sequence

from benchpool_scheduler.simulation.shapes.timing import Timed, as_json, in_a_fresh_process

Echo = Callable[[str], object]


def run_shape(
    shape: str, *, nodes: int | None = None, json: bool = False, echo: Echo = print
) -> int:
    """Time a shape of the decision core and print one row.

    Returns:
        0 if the result is as expected, else 1.

    Raises:
        InvalidInput: The shape cannot have this size.
    """
    timed = in_a_fresh_process(shape, nodes)
    if json:
        echo(codec.dumps(as_json(timed), indent=2))
    else:
        for line in table([timed]):
            echo(line)
    return 0 if timed.ok else 1


def table(rows: Sequence[Timed]) -> list[str]:
    """Return rows in columns below their names; numbers are right-aligned."""
    cells = [as_json(row) for row in rows]
    texts = [{name: _text(value) for name, value in row.items()} for row in cells]
    widths = {name: max(len(name), *(len(row[name]) for row in texts)) for name in Timed.__slots__}
    lines = [{name: name for name in widths}, *texts]
    return [_line(line, widths, cells[0]) for line in lines]


def _line(line: Mapping[str, str], widths: Mapping[str, int], kinds: Mapping[str, object]) -> str:
    aligned = (
        line[name].ljust(width) if isinstance(kinds[name], str) else line[name].rjust(width)
        for name, width in widths.items()
    )
    return "  ".join(aligned).rstrip()


def _text(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
