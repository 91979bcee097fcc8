"""Operations on the configuration: read it, change it, and list its versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.contract.configuration import (
    ApplyQuery,
    CheckQuery,
    ConfigurationChange,
    ConfigurationEdit,
    ConfigurationRevert,
    ConfigurationText,
    ConfigurationVersion,
    VersionQuery,
    VersionsQuery,
)
from benchpool_scheduler.contract.forms import PlainVerb
from benchpool_scheduler.contract.operation import MIB, Given, Media, Who, given, operation

_CONFIGURATION: Mapping[str, Any] = {"who": Who.ADMIN, "takes": Media.YAML, "max_body": MIB}


class ConfigurationOperations:
    """The configuration and its versions."""

    @operation(
        "POST",
        "config/check",
        ConfigurationChange,
        **_CONFIGURATION,
        query=CheckQuery,
        changes=False,
        verb=PlainVerb(
            ("config", "check"),
            "Show what a benchpool.yaml would change, without applying it.",
            hidden=("file",),
        ),
    )
    def check_config(self, text: str, *, file: str | None = None) -> Given:
        """Check what a benchpool.yaml would change.

        The file is not put in force. ``file`` is its name in error messages.
        """
        return given(text, query={"file": file})

    @operation(
        "POST",
        "config/apply",
        ConfigurationChange,
        **_CONFIGURATION,
        query=ApplyQuery,
        verb=PlainVerb(
            ("config", "apply"),
            "Put a benchpool.yaml in force, all or nothing.",
            hidden=("file",),
        ),
    )
    def apply_config(
        self, text: str, *, file: str | None = None, reason: str | None = None
    ) -> Given:
        """Put a benchpool.yaml in force.

        All of it or nothing. It becomes a new version.
        """
        return given(text, query={"file": file, "reason": reason})

    @operation("POST", "config/set", ConfigurationChange, who=Who.ADMIN, body=ConfigurationEdit)
    def set_config(self, edit: ConfigurationEdit) -> Given:
        """Set single values of the configuration.

        All of them or nothing. Comments and order of the file stay.
        """
        return given(edit)

    @operation(
        "POST",
        "config/revert",
        ConfigurationChange,
        who=Who.ADMIN,
        body=ConfigurationRevert,
        verb=PlainVerb(
            ("config", "revert"),
            "Put an earlier version of the configuration in force again.",
            "Default: the version before the current one. Later versions stay in `config log` and "
            "can be put in force again the same way.",
            positional=("version",),
        ),
    )
    def revert_config(self, asked: ConfigurationRevert) -> Given:
        """Put an earlier version in force again, as a new version."""
        return given(asked)

    @operation(
        "GET",
        "config/log",
        list[ConfigurationVersion],
        who=Who.ADMIN,
        query=VersionsQuery,
        verb=PlainVerb(
            ("config", "log"),
            "List the changes of the configuration: who, when, why, and with what effects.",
        ),
    )
    def config_log(self, *, limit: int = 50) -> Given:
        """List the versions of the configuration.

        Newest first.
        """
        return given(query={"limit": limit})

    @operation(
        "GET",
        "config",
        ConfigurationText,
        who=Who.ADMIN,
        query=VersionQuery,
        verb=PlainVerb(("config", "show"), "Print the configuration in force, or an earlier one."),
    )
    def config(self, *, version: int | None = None) -> Given:
        """Read the text of the configuration.

        By default the one in force, or that of an earlier version.
        """
        return given(query={"version": version})
