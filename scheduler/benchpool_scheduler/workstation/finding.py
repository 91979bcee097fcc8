"""One line of what ``benchpool doctor`` finds."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Level = Literal["ok", "degraded", "broken"]


class Finding(Struct, frozen=True):
    """One line of the report; ``remedy`` is empty where all is well."""

    name: str
    level: Level
    text: str
    remedy: str = ""
