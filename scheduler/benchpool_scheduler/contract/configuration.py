"""Changes of a ``benchpool.yaml``, single settings, and versions of the configuration."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from benchpool_scheduler.contract.scalars import Name

Why = Annotated[str, Meta(max_length=500, description="Reason, shown with the version.")]
FileName = Annotated[str, Meta(max_length=4096)]
VersionNumber = Annotated[int, Meta(ge=1, le=1_000_000_000)]
SettingKey = Annotated[str, Meta(min_length=1, max_length=300)]


class ConfigurationChange(Struct, frozen=True):
    """Effects of a configuration, one line each. Answer of every check and change of it.

    ``version`` is its number in ``config log``, null where nothing came into force. ``file`` is the
    path that keeps the text in force, null where no file keeps it.
    """

    applied: bool
    changes: list[str]
    warnings: list[str] = field(default_factory=list)
    version: int | None = None
    file: str | None = None


class CheckQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Name of the text in error messages; ``benchpool.yaml`` by default."""

    file: FileName | None = None


class ApplyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Name of the text in error messages, and the reason of the change."""

    file: FileName | None = None
    reason: Why | None = None


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """Value of the configuration to set, or names to add to a list or to remove from it.

    ``key`` is written with dots: ``build.users.susan``, ``projects.vision.quota``,
    ``policy.grace_s``. A null value removes the key. ``projects.vision.name`` creates the project
    ``vision``, and with null removes it.
    """

    key: SettingKey
    value: bool | int | float | str | list[Name] | None = None
    add: Annotated[list[Name], Meta(max_length=10_000)] = []
    remove: Annotated[list[Name], Meta(max_length=10_000)] = []


class ConfigurationEdit(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings to put in force together.

    With ``base``, the version that the edit starts from, the settings are rejected if a newer
    version has come into force.
    """

    settings: Annotated[list[Setting], Meta(min_length=1, max_length=10_000)]
    reason: Why | None = None
    base: VersionNumber | None = None


class ConfigurationRevert(Struct, frozen=True, forbid_unknown_fields=True):
    """Version to put in force again; by default the one before the current one."""

    version: Annotated[VersionNumber, Meta(description="Default: the previous one.")] | None = None
    reason: Why | None = None


class VersionWay(StrEnum):
    """Way in which a version came into force."""

    START = "start"  # found when the service started
    APPLY = "apply"
    SET = "set"
    REVERT = "revert"
    RELOAD = "reload"  # the file was read again
    OBJECTS = "objects"  # the objects of the cluster changed


class ConfigurationVersion(Struct, frozen=True, kw_only=True):
    """Version of the configuration that came into force.

    Attributes:
        number: Number from 1; the largest is in force.
        author: The Hub's name of the author; empty where the file or the objects were changed.
        changes: Effects of the version, one line each.
        reverts: Version whose text a revert restored.
        hash: SHA-256 of the text.
    """

    number: int
    at: datetime
    author: str = ""
    way: VersionWay
    reason: str = ""
    changes: list[str] = []
    reverts: int | None = None
    hash: str = ""


class VersionsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Number of versions to list, newest first."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Maximum number of versions.")] = 50


class VersionQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Version to read; the one in force by default."""

    version: Annotated[VersionNumber, Meta(description="Default: the current one.")] | None = None


class ConfigurationText(Struct, frozen=True):
    """Text of a version. ``version`` is 0 where none was recorded."""

    version: int
    text: str
    file: str | None = None
