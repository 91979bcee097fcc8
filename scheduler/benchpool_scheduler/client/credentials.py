"""Discovery of the service's address and token.

The order is: explicit values (``--url``, ``--token``), ``BENCHPOOL_URL`` and ``BENCHPOOL_TOKEN``,
the notebook server's own token, then a ``benchpool up`` of the same user (formats, section 5). The
caller passes the environment. Only command line and application read it themselves.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import platformdirs

from benchpool_scheduler.client import elsewhere
from benchpool_scheduler.errors import InvalidInput, NotAuthenticated, Unavailable


@dataclass(frozen=True, slots=True)
class Credentials:
    """Address of the service (``http://host/services/benchpool``) and the caller's token.

    The token is never part of ``repr``. ``page`` is the address for browsers, if known.
    """

    url: str
    token: str
    source: str = "given"
    page: str = ""

    def __repr__(self) -> str:
        return f"Credentials(url={self.url!r}, source={self.source!r})"


class Running(msgspec.Struct, frozen=True):
    """Content of ``up.json`` in the state folder of a running ``benchpool up``.

    ``token_file`` is an absolute path, or a name inside the state folder.
    """

    pid: int
    scheduler_api: str
    token_file: str = "admin-token"  # noqa: S105 (a file name)
    url: str | None = None
    hub_api: str | None = None


def state_folder(environ: Mapping[str, str]) -> Path:
    """Return the state folder of ``benchpool up``: ``BENCHPOOL_STATE`` or the default."""
    folder = environ.get("BENCHPOOL_STATE")
    return Path(folder) if folder else platformdirs.user_state_path("benchpool")


GIVEN = "Pass --url, and --token with a token from the Hub's token page"
"""Remedy for an account that cannot use a benchpool started by another account."""


def discover(
    environ: Mapping[str, str],
    *,
    url: str | None = None,
    token: str | None = None,
    state: Path | None = None,
) -> Credentials:
    """Return the address of the service and a token.

    Args:
        environ: The caller's environment.
        url, token: Explicit values, which take precedence.
        state: State folder of a ``benchpool up``. None for the default.

    Raises:
        Unavailable: No benchpool is known here.
        NotAuthenticated: A benchpool is known, but no token for it.

    >>> discover({"BENCHPOOL_URL": "http://h/services/benchpool/", "BENCHPOOL_TOKEN": "t"})
    Credentials(url='http://h/services/benchpool', source='environment')
    """
    given_url = url or environ.get("BENCHPOOL_URL")
    given_token = token or environ.get("BENCHPOOL_TOKEN") or environ.get("JUPYTERHUB_API_TOKEN")
    if given_url and given_token:
        return Credentials(_service_url(given_url), given_token, "given" if url else "environment")
    folder, running = _running(environ, state, given_url)
    if given_url:
        address = _service_url(given_url)
        if running is not None and _service_url(running.scheduler_api) == address:
            return Credentials(address, _read_token(folder, running), str(folder))
        raise NotAuthenticated(
            f"There is no token for {given_url}. Set BENCHPOOL_TOKEN, or pass --token with one "
            "from the Hub's token page."
        )
    if running is None:
        raise Unavailable(
            f"No benchpool runs from {folder}. Start one with `benchpool up`. For one started with "
            "`--state DIR`, run `export BENCHPOOL_STATE=DIR`. For one elsewhere, pass --url and "
            "--token, or set BENCHPOOL_URL and BENCHPOOL_TOKEN.",
            code="not-reachable",
        )
    # A notebook server's token without its BENCHPOOL_URL belongs to another hub.
    own = token or environ.get("BENCHPOOL_TOKEN") or _read_token(folder, running)
    return Credentials(
        _service_url(running.scheduler_api), own, str(folder), page=running.url or ""
    )


def folder_of_running(environ: Mapping[str, str], state: Path | None = None) -> Path:
    """Return the state folder of the ``benchpool up`` that runs here, as found by ``discover``.

    If none runs, return ``state`` or the default. Errors: Unavailable if several run.
    """
    return _running(environ, state, None)[0]


def _running(
    environ: Mapping[str, str], state: Path | None, given_url: str | None
) -> tuple[Path, Running | None]:
    folder = state or state_folder(environ)
    running = read_running(folder)
    if running is None and state is None and not environ.get("BENCHPOOL_STATE"):
        return _elsewhere(folder, given_url)
    return folder, running


def _elsewhere(usual: Path, given_url: str | None) -> tuple[Path, Running | None]:
    """Return the one ``benchpool up`` that runs from another state folder, if any.

    Errors: Unavailable if several run and none is named.
    """
    found = [(one, start) for one in elsewhere.running() if (start := read_running(one))]
    if given_url:
        address = _service_url(given_url)
        found = [each for each in found if _service_url(each[1].scheduler_api) == address]
    if len(found) > 1 and not given_url:
        which = " or ".join(f"`export BENCHPOOL_STATE={shlex.quote(str(one))}`" for one, _ in found)
        raise Unavailable(
            f"{len(found)} benchpools run here, none from the usual folder {usual}. Choose one "
            f"with {which}.",
            code="not-reachable",
        )
    return found[0] if found else (usual, None)


def read_running(folder: Path) -> Running | None:
    """Return the content of ``up.json``, or None if there is no such file.

    Raises:
        Unavailable: The file belongs to another account, or cannot be read.
    """
    path = folder / "up.json"
    try:
        owner, text = path.stat().st_uid, path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failed:
        raise Unavailable(f"{path} cannot be read ({failed.strerror}).") from failed
    if owner not in (os.geteuid(), 0):
        # The token would be sent to the address chosen by another account.
        raise Unavailable(f"{path} belongs to another account. {GIVEN}.")
    try:
        return msgspec.json.decode(text, type=Running)
    except msgspec.DecodeError as bad:
        raise Unavailable(f"{path} is damaged ({bad}). Run `benchpool up` again.") from bad


def _read_token(folder: Path, running: Running) -> str:
    path = folder / running.token_file
    try:
        return path.read_text().strip()
    except OSError as failed:
        raise NotAuthenticated(
            f"The token file {path} cannot be read ({failed.strerror}). {GIVEN}."
        ) from failed


def _service_url(url: str) -> str:
    address = url.rstrip("/").removesuffix("/api/v1")
    if not address.startswith(("http://", "https://")):
        raise InvalidInput(
            f"{url} is not a benchpool address. It must begin with http:// or https://.",
            field="url",
        )
    return address
