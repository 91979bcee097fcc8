"""Templates of services: commands and readiness paths. Pure, except for paths.

The gate removes its path prefix from requests. All applications find their own address from
relative links or from a variable, so none needs the full path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from benchpool_scheduler.errors import InvalidInput


class Shows(StrEnum):
    """Kind of input of a template."""

    FOLDER = "a JOB or FOLDER"
    STORE = "a database FILE or an address"
    SCRIPT = "a SCRIPT of this folder"


@dataclass(frozen=True, slots=True)
class ServiceTemplate:
    """Application to serve.

    Attributes:
        package: Package that must be installed in its Python.
        words: Command in the words of a terminal. ``{what}`` stands for its input, and ``{host}``
            and ``{port}`` for the address of a replica.
        env: Environment variables. ``readiness``: path that answers when it is ready.
    """

    package: str
    shows: Shows
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    readiness: str = "/"

    @property
    def travels(self) -> bool:
        """Whether the folder's files are sent with it. Other inputs are read in place."""
        return self.shows is Shows.SCRIPT


TEMPLATES: Mapping[str, ServiceTemplate] = MappingProxyType(
    {
        "tensorboard": ServiceTemplate(
            "tensorboard",
            Shows.FOLDER,
            ("-m", "tensorboard.main", "--logdir", "{what}", "--host", "{host}", "--port", "{port}",
             "--load_fast=false"),
        ),
        "mlflow": ServiceTemplate(
            "mlflow",
            Shows.STORE,
            ("-m", "mlflow", "server", "--host", "{host}", "--port", "{port}", "--workers", "1",
             "--backend-store-uri", "{what}"),
            readiness="/health",
        ),
        "streamlit": ServiceTemplate(
            "streamlit",
            Shows.SCRIPT,
            ("-m", "streamlit", "run", "--server.address", "{host}", "--server.port", "{port}",
             "--server.headless", "true", "--browser.gatherUsageStats", "false", "{what}"),
            readiness="/_stcore/health",
        ),
        "gradio": ServiceTemplate(
            "gradio",
            Shows.SCRIPT,
            ("{what}",),
            {
                "GRADIO_SERVER_NAME": "{host}",
                "GRADIO_SERVER_PORT": "{port}",
                "GRADIO_ROOT_PATH": "{prefix}",
                "GRADIO_ANALYTICS_ENABLED": "False",
            },
        ),
    }
)  # fmt: skip
"""Templates by value of ``--template``."""


def words_of(name: str, command: Sequence[str]) -> tuple[str, list[str]]:
    """Return the input of a template, and further words for it. Errors: InvalidInput.

    >>> words_of("gradio", ["demo.py", "--theme", "soft"])
    ('demo.py', ['--theme', 'soft'])
    """
    given = list(command[1:] if command[:1] == ["--"] else command)
    if not given or given[0].startswith("-"):
        raise InvalidInput(
            f"Name the input of {name} after the options: {TEMPLATES[name].shows}.",
            field="template",
        )
    return given[0], given[1:]


def filled(template: ServiceTemplate, what: str, more: Sequence[str]) -> list[str]:
    """Return the command with its input.

    >>> filled(TEMPLATES["tensorboard"], "/runs", ["--reload_interval=5"])[2:4]
    ['--logdir', '/runs']
    """
    return [*(what if word == "{what}" else word for word in template.words), *more]
