"""``benchpool.yaml``: read, checked, compared."""

from benchpool_scheduler.configuration.settings import (
    Build,
    Configuration,
    NodePool,
    ProjectSettings,
)

__all__ = ["Build", "Configuration", "NodePool", "ProjectSettings"]
