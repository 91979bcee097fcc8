r"""Progress bars in the output of a program, as drawn by tqdm and similar libraries: pure.

     45%|████▌     | 450/1000 [00:45<00:55, 10.0it/s]
    Epoch 3/8:  45%|████▌     | 450/1000 [00:45<00:55, 10.0it/s, loss=0.31]

The progress of the whole program is estimated with care. A fraction is returned only for a bar that
lasts, that is not full, and that is not one of several in a row.
"""

from __future__ import annotations

import re

TEXT = 120
"""Most characters of a bar's description that are kept."""

OPEN = 16
"""Most bars that are followed at once."""

REST = 1000
"""Most bytes of an incomplete line that are kept for the next piece."""

LASTS_S = 3.0
"""Shortest duration of a bar that counts for the whole program, in seconds."""

_BAR = re.compile(
    r"^(?P<name>.{0,300}?):? {0,8}(?P<percent>\d{1,3})%\|[^|]{0,400}\| *"
    r"(?P<done>[\d.]+[kMGTP]?)/(?P<all>[\d.]+[kMGTP]?) \[[\d:]+<[\d:?]+"
)
_OF_MANY = re.compile(r"(\d+) ?/ ?(\d+)")
_NUMBERS = re.compile(r"[\d.:/=,\s]+")
_ENDS = re.compile(rb"[\r\n]+")
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


class ProgressBar:
    """A bar in its last drawn state.

    Attributes:
        full: Its fraction, 0 to 1. ``of``: its total, as written.
        text: Its state as a text. ``since``: time when it was drawn first. ``again``: it was full
            before, and restarted.
    """

    __slots__ = ("again", "full", "name", "of", "since", "text")

    def __init__(self, name: str, full: float, of: str, text: str) -> None:
        self.name = name
        self.full = full
        self.of = of
        self.text = text
        self.since = 0.0
        self.again = False

    def fraction(self, now: float) -> float | None:
        """Return the progress of the program, 0 to 1, or None if the bar does not show it.

        >>> bar = read("Epoch 2/4:  50%|#####     | 5/10 [00:45<00:55,  9.0it/s]")
        >>> bar.fraction(10.0), bar.fraction(1.0)
        (0.375, None)
        >>> read("Epoch 2:  50%|#####     | 5/10 [00:45<00:55,  9.0it/s]").fraction(10.0) is None
        True
        """
        if now - self.since < LASTS_S:
            return None
        of_many = _OF_MANY.search(self.name)
        if of_many is not None:
            turn, turns = int(of_many[1]), int(of_many[2])
            return (turn - 1 + self.full) / turns if 1 <= turn <= turns else None
        several = self.again or any(sign.isdigit() for sign in self.name)
        return None if several or self.full >= 1.0 else self.full


def read(line: str) -> ProgressBar | None:
    """Return the bar in a line, or None.

    >>> bar = read("Epoch 3:  45%|####5     | 450/1000 [00:45<00:55, 10.0it/s, loss=0.31]")
    >>> bar.full, bar.text
    (0.45, 'Epoch 3, 450/1000')
    >>> read(" 12%|#2        | 1.20k/10.0k [00:01<00:08, 1.1kB/s]").text
    '1.20k/10.0k'
    >>> read("45% of all cases | 3/4 [see below]") is None
    True
    """
    found = _BAR.match(line)
    if found is None:
        return None
    done, everything = _number(found["done"]), _number(found["all"])
    if done is None or not everything:
        return None
    name = found["name"].strip()[:TEXT]
    text = f"{found['done']}/{found['all']}"
    return ProgressBar(
        name, min(1.0, done / everything), found["all"], f"{name}, {text}" if name else text
    )


class ProgressBars:
    """Tracker of the bars in a stream of bytes."""

    def __init__(self) -> None:
        self._rest = b""
        self._open: dict[tuple[str, str], ProgressBar] = {}

    def take(self, data: bytes, now: float) -> ProgressBar | None:
        r"""Process the next piece of output; return the outermost bar if a bar moved.

        Of nested bars, the outermost one was drawn first.

        Args:
            now: Seconds of a clock.

        >>> bars = ProgressBars()
        >>> bars.take(b"epochs:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]\n", 0.0).text
        'epochs, 1/2'
        >>> inner = b"\r 10%|#         | 1/10 [00:01<00:09,  1.00s/it]"
        >>> bars.take(inner, 1.0).text
        'epochs, 1/2'
        """
        data = self._rest + data
        *whole, self._rest = _ENDS.split(data)
        lines = [*whole, self._rest]
        self._rest = self._rest[-REST:]
        moved = False
        for line in lines:
            bar = read(_COLOUR.sub("", line.decode("utf-8", "replace"))) if b"%|" in line else None
            moved = (bar is not None and self._put(bar, now)) or moved
        return next(iter(self._open.values()), None) if moved else None

    def _put(self, bar: ProgressBar, now: float) -> bool:
        """Store a bar; return whether it moved."""
        key = (" ".join(_NUMBERS.split(bar.name)).strip(), bar.of)
        before = self._open.get(key)
        if before is not None and before.text == bar.text:
            return False
        began = before is None or bar.full < before.full
        bar.since = now if before is None else before.since
        bar.again = before is not None and (before.again or (began and before.full >= 1.0))
        # Other full bars are dropped.
        for other in [key_ for key_, it in self._open.items() if it.full >= 1.0 and key_ != key]:
            del self._open[other]
        if before is not None or len(self._open) < OPEN:
            self._open[key] = bar
        return True


def _number(text: str) -> float | None:
    unit = _UNITS.get(text[-1:])
    try:
        return float(text if unit is None else text[:-1]) * (unit or 1.0)
    except ValueError:
        return None
