"""What a ``benchpool.yaml`` changes, single settings of it, and the versions that it had."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field

from benchpool_scheduler.contract.scalars import Name

Why = Annotated[str, Meta(max_length=500, description="Why, for those who read the versions.")]
FileName = Annotated[str, Meta(max_length=4096)]
VersionNumber = Annotated[int, Meta(ge=1, le=1_000_000_000)]
SettingKey = Annotated[str, Meta(min_length=1, max_length=300)]


class ConfigurationChange(Struct, frozen=True):
    """What changes for whom, a line each; answer of all that checks or changes the configuration.

    ``version`` is what it is called in ``config log``, null where nothing came into force. ``file``
    is where the text in force is kept, null where no file keeps it.
    """

    applied: bool
    changes: list[str]
    warnings: list[str] = field(default_factory=list)
    version: int | None = None
    file: str | None = None


class CheckQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """What to call the text in what is said of it; ``benchpool.yaml`` by default."""

    file: FileName | None = None


class ApplyQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """As ``CheckQuery``, and why."""

    file: FileName | None = None
    reason: Why | None = None


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """One value of the configuration to set, or names to add to a list or take from it.

    ``key`` is written with dots: ``build.users.susan``, ``projects.vision.quota``,
    ``policy.grace_s``. A null value takes the key away. ``projects.vision.name`` makes the project
    ``vision``, and with null removes it.
    """

    key: SettingKey
    value: bool | int | float | str | list[Name] | None = None
    add: Annotated[list[Name], Meta(max_length=10_000)] = []
    remove: Annotated[list[Name], Meta(max_length=10_000)] = []


class ConfigurationEdit(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings to put in force together.

    With ``base``, the version that somebody looked at, they are refused where another one came
    into force since.
    """

    settings: Annotated[list[Setting], Meta(min_length=1, max_length=10_000)]
    reason: Why | None = None
    base: VersionNumber | None = None


class ConfigurationRevert(Struct, frozen=True, forbid_unknown_fields=True):
    """The version to put in force again; by default the one before that in force."""

    version: Annotated[VersionNumber, Meta(description="By default the one before.")] | None = None
    reason: Why | None = None


class VersionWay(StrEnum):
    """How a version came into force."""

    START = "start"  # found at a start of the service
    APPLY = "apply"
    SET = "set"
    REVERT = "revert"
    RELOAD = "reload"  # the file was read again
    OBJECTS = "objects"  # of the cluster


class ConfigurationVersion(Struct, frozen=True, kw_only=True):
    """One version that came into force.

    Attributes:
        number: Counts from 1; the largest is the one in force.
        author: The Hub's name of who did it; empty where the file or the objects were changed.
        changes: What it changed for whom, a line each.
        reverts: The version whose text it has, of a revert.
        hash: SHA-256 of its text.
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
    """How many versions, the newest first."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="Most of them.")] = 50


class VersionQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Which version; that in force by default."""

    version: Annotated[VersionNumber, Meta(description="That in force by default.")] | None = None


class ConfigurationText(Struct, frozen=True):
    """The text of a version; without version 0, where none was recorded."""

    version: int
    text: str
    file: str | None = None
