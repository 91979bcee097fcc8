"""``benchpool.yaml``: loading, checks, comparison and changes."""

from benchpool_scheduler.configuration.comparison import compare
from benchpool_scheduler.configuration.editing import command_of, edited
from benchpool_scheduler.configuration.first import default_configuration
from benchpool_scheduler.configuration.loader import line_of, load
from benchpool_scheduler.configuration.personal import among, in_force, with_personal, written
from benchpool_scheduler.configuration.settings import (
    EVERYBODY,
    Budgets,
    Build,
    Configuration,
    IdleExemption,
    IdleRule,
    Level,
    NodePool,
    PersonalProject,
    ProjectSettings,
    UserHours,
)
from benchpool_scheduler.configuration.trying import attempt

__all__ = [
    "EVERYBODY",
    "Budgets",
    "Build",
    "Configuration",
    "IdleExemption",
    "IdleRule",
    "Level",
    "NodePool",
    "PersonalProject",
    "ProjectSettings",
    "UserHours",
    "among",
    "attempt",
    "command_of",
    "compare",
    "default_configuration",
    "edited",
    "in_force",
    "line_of",
    "load",
    "with_personal",
    "written",
]
