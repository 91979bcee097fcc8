"""``benchpool.yaml``: read, checked, compared."""

from benchpool_scheduler.configuration.comparison import compare
from benchpool_scheduler.configuration.first import default_configuration
from benchpool_scheduler.configuration.loader import load
from benchpool_scheduler.configuration.settings import (
    Budgets,
    Build,
    Configuration,
    Level,
    NodePool,
    ProjectSettings,
)

__all__ = [
    "Budgets",
    "Build",
    "Configuration",
    "Level",
    "NodePool",
    "ProjectSettings",
    "compare",
    "default_configuration",
    "load",
]
