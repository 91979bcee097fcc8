"""What a ``benchpool.yaml`` changes."""

from __future__ import annotations

from msgspec import Struct, field


class ConfigurationChange(Struct, frozen=True):
    """Answer of ``config check`` and ``config apply``: what changes for whom, a line each."""

    applied: bool
    changes: list[str]
    warnings: list[str] = field(default_factory=list)
