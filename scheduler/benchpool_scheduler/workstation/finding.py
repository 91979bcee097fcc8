"""One finding of ``benchpool doctor``."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "degraded", "broken"]


class Finding(Struct, frozen=True):
    """One line of the report; ``remedy`` is empty without a problem."""

    name: str
    level: Level
    text: str
    remedy: str = ""
