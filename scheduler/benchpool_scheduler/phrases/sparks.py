"""Curves as text: as a sparkline and as a small plot, without I/O."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
PAUSE = "‖"
NO_NUMBER = "×"
DOT = "●"


def metric(value: float | None) -> str:
    """Return a value of a curve as text; None is not a finite number.

    >>> metric(0.123456), metric(12345678.0), metric(3.0), metric(0.00001234), metric(None)
    ('0.1235', '1.235e+07', '3', '1.234e-05', 'no number')
    """
    return "no number" if value is None else f"{value:.4g}"


def spark(
    steps: Sequence[int],
    values: Sequence[float | None],
    attempts: Sequence[int] = (),
    width: int = 32,
) -> str:
    """Return a curve as a line of at most ``width`` characters, plus one for each pause.

    >>> spark([0, 1, 2, 3], [3.0, 2.0, 1.0, 0.0]), spark([0, 9], [1.0, 1.0], width=4)
    ('█▆▃▁', '▁▁')
    >>> spark([0, 1, 2, 3], [1.0, None, 0.0, 2.0], [1, 1, 2, 2])
    '▅×‖▁█'
    """
    cells = _cells(steps, values, attempts, width)
    known = [value for value, _ in cells if value is not None]
    low, span = (min(known), max(known) - min(known)) if known else (0.0, 0.0)
    text, attempt = "", cells[0][1] if cells else 0
    for value, of in cells:
        text += PAUSE if of != attempt else ""
        attempt = of
        text += NO_NUMBER if value is None else BLOCKS[round(_part(value, low, span) * 7)]
    return text


def picture(
    steps: Sequence[int],
    values: Sequence[float | None],
    attempts: Sequence[int] = (),
    width: int = 60,
    height: int = 10,
) -> list[str]:
    """Return a curve as lines of text with its scale; a pause is a vertical line.

    >>> print("\\n".join(picture([0, 50, 100], [2.0, 1.0, 0.0], width=3, height=3)))
    2 │ ●
      │  ●
    0 │   ●
      └────
       0…100
    """
    cells = _cells(steps, values, attempts, width)
    known = [value for value, _ in cells if value is not None]
    if not known:
        return ["No value of it is a number."]
    low, span = min(known), max(known) - min(known)
    columns: list[str] = []
    attempt = cells[0][1]
    for value, of in cells:
        columns += ["│" * height] if of != attempt else []
        attempt = of
        place = None if value is None else round(_part(value, low, span) * (height - 1))
        mark = "".join(DOT if at == place else " " for at in range(height))
        columns.append(mark if value is not None else NO_NUMBER + " " * (height - 1))
    labels = {height - 1: metric(low + span), 0: metric(low)}
    room = max(map(len, labels.values()))
    rows = [
        f"{labels.get(at, ''):>{room}} │ {''.join(column[at] for column in columns)}".rstrip()
        for at in reversed(range(height))
    ]
    ends = f"{steps[0]}…{steps[-1]}"
    return [*rows, f"{'':>{room}} └{'─' * (len(columns) + 1)}", f"{'':>{room}}  {ends}"]


def _cells(
    steps: Sequence[int], values: Sequence[float | None], attempts: Sequence[int], width: int
) -> list[tuple[float | None, int]]:
    """Return the mean value and the last attempt of each of ``width`` equal ranges of steps.

    Ranges without a point are left out. The mean is None if one of the values is not a number.
    """
    if not steps:
        return []
    known = attempts or [1] * len(steps)
    span = max(1, steps[-1] - steps[0] + 1)
    places = [min(width - 1, (step - steps[0]) * width // span) for step in steps]
    cells: list[tuple[float | None, int]] = []
    for place in dict.fromkeys(places):
        inside = [at for at, it in enumerate(places) if it == place]
        numbers = [value for at in inside if (value := values[at]) is not None]
        mean = sum(numbers) / len(numbers) if len(numbers) == len(inside) else None
        cells.append((mean, known[inside[-1]]))
    return cells


def _part(value: float, low: float, span: float) -> float:
    return (value - low) / span if span > 0 else 0.0
