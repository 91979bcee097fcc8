"""Options of a notebook server, parsed from form, URL and REST API in one place.

Pure: no Hub, no scheduler. The scheduler decides whether the request is granted (R2).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from benchpool_scheduler.errors import InvalidInput

WhenBusy = Literal["wait", "start-without-gpu", "refuse"]
"""Action if the GPUs are not available immediately."""

MOST_GPUS = 1024
MOST_MODELS = 16
LONGEST_MODEL = 100

_OURS = ("gpus", "gpu_models", "when_busy")
# JupyterHub and its admin page add these to user options.
_OTHERS = ("profile", "display_name", "_xsrf")


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of one server: whole GPUs, and the accepted models (empty for any).

    ``when_busy`` is None if the administrator's setting applies.
    """

    gpus: int = 0
    gpu_models: tuple[str, ...] = ()
    when_busy: WhenBusy | None = None

    def as_user_options(self) -> dict[str, object]:
        """Return the options in the form that the Hub stores and REST clients send."""
        options: dict[str, object] = {"gpus": self.gpus}
        if self.gpu_models:
            options["gpu_models"] = list(self.gpu_models)
        if self.when_busy:
            options["when_busy"] = self.when_busy
        return options


def parse(raw: Mapping[str, object]) -> ServerOptions:
    """Parse user options from a REST client, an older start or the Hub's form.

    Raises:
        InvalidInput: A value or a key is wrong. The message names it.

    >>> parse({"gpus": 2, "gpu_models": ["A100"]})
    ServerOptions(gpus=2, gpu_models=('A100',), when_busy=None)
    >>> parse({"gpus": ["1"]})  # a form sends lists of strings
    ServerOptions(gpus=1, gpu_models=(), when_busy=None)
    >>> parse({})
    ServerOptions(gpus=0, gpu_models=(), when_busy=None)
    """
    for key in raw:
        if key not in _OURS and key not in _OTHERS:
            raise _unknown(key)
    return ServerOptions(
        _gpus(raw.get("gpus")), _models(raw.get("gpu_models")), _when_busy(raw.get("when_busy"))
    )


def ours(raw: Mapping[str, object]) -> dict[str, object]:
    """Return benchpool's own options. A spawner may have further options.

    >>> ours({"gpus": 1, "profile": "large"})
    {'gpus': 1}
    """
    return {key: raw[key] for key in _OURS if key in raw}


def chooses_gpus(raw: Mapping[str, object]) -> bool:
    """Return whether a number of GPUs was chosen, even 0.

    >>> chooses_gpus({"gpus": 0}), chooses_gpus({"gpus": [""]}), chooses_gpus({})
    (True, False, False)
    """
    return _single(raw.get("gpus")) not in (None, "")


def parse_form(data: Mapping[str, object]) -> ServerOptions:
    """Parse benchpool's own fields of the form, and ignore others.

    Raises:
        InvalidInput: A value is wrong.
    """
    return parse(ours(data))


def _unknown(key: str) -> InvalidInput:
    near = difflib.get_close_matches(key, _OURS, n=1)
    hint = f"did you mean {near[0]}?" if near else "known are gpus, gpu_models and when_busy."
    return InvalidInput(
        f"A server has no option {key[:60]!r}: {hint}", code="server-options", field=key[:60]
    )


def _single(value: object) -> object:
    if isinstance(value, list | tuple):
        return value[0] if len(value) == 1 else (value or None)
    return value


def _gpus(value: object) -> int:
    single = _single(value)
    if single is None or single == "":
        return 0
    if isinstance(single, str) and single.isascii() and single.strip().isdigit():
        single = int(single.strip()[:10])
    if isinstance(single, bool) or not isinstance(single, int) or not 0 <= single <= MOST_GPUS:
        raise InvalidInput(
            f"gpus is {str(value)[:60]!r}: give a whole number from 0 to {MOST_GPUS}.",
            code="server-options",
            field="gpus",
            numbers={"limit": MOST_GPUS},
        )
    return single


def _when_busy(value: object) -> WhenBusy | None:
    single = _single(value)
    if single is None or single == "":
        return None
    for known in get_args(WhenBusy):
        if single == known:
            return known  # type: ignore[no-any-return]
    raise InvalidInput(
        f"when_busy is {str(value)[:60]!r}: give one of {', '.join(get_args(WhenBusy))}.",
        code="server-options",
        field="when_busy",
    )


def _models(value: object) -> tuple[str, ...]:
    if value is None or value == "":
        return ()
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise _bad_models(value)
    names = tuple(dict.fromkeys(one.strip() for one in listed if one.strip()))
    if len(names) > MOST_MODELS or any(len(name) > LONGEST_MODEL for name in names):
        raise _bad_models(value)
    return names


def _bad_models(value: object) -> InvalidInput:
    return InvalidInput(
        f"gpu_models is {str(value)[:60]!r}: give a list of at most {MOST_MODELS} names of GPU "
        "models, or leave it out for any model.",
        code="server-options",
        field="gpu_models",
        numbers={"limit": MOST_MODELS},
    )
