"""Conversion of an HTTP answer to a contract value, or to its error."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from benchpool_scheduler import errors
from benchpool_scheduler.contract import ErrorAnswer, LogRange
from benchpool_scheduler.contract.operation import Call

T = TypeVar("T")

NOT_BENCHPOOL = "not-benchpool"
"""Code of errors made from answers of another server, such as the Hub or a proxy."""


def read(call: Call[T], status: int, headers: Mapping[str, str], body: bytes, url: str) -> T:
    """Return the value of a successful answer.

    Raises:
        BenchpoolError: Of the class for the status, with the service's own message.
    """
    if not 200 <= status < 300:
        raise error(status, headers, body, url)
    returns = call.operation.answer
    if _is_page(headers, body, returns):
        raise errors.ServerFault(
            f"The answer of {url} is a web page, not benchpool. Check the address, or try "
            "again when the Hub has started.",
            code=NOT_BENCHPOOL,
        )
    if returns is NoneType:
        return None  # type: ignore[return-value]
    if returns is bytes:
        return body  # type: ignore[return-value]
    if returns is LogRange:
        return _log_range(headers, body)  # type: ignore[return-value]
    try:
        return msgspec.json.decode(body, type=returns)
    except msgspec.DecodeError as bad:
        raise errors.ServerFault(
            f"The answer of {url} does not fit this version of benchpool ({bad}). "
            "Update the older of the two.",
            code="other-version",
        ) from bad


def _is_page(headers: Mapping[str, str], body: bytes, returns: type[object]) -> bool:
    """Return whether a successful answer is a page of the Hub or a proxy instead of the API's."""
    if body.lstrip()[:1] != b"<":
        return False
    html = headers.get("Content-Type", "").startswith("text/html")
    return html or returns not in (bytes, LogRange)


def _log_range(headers: Mapping[str, str], body: bytes) -> LogRange:
    def number(name: str) -> int:
        return int(headers.get(f"Benchpool-Log-{name}", "0"))

    return LogRange(
        data=body,
        attempt=number("Attempt"),
        offset=number("Offset"),
        next=number("Next"),
        skipped=number("Skipped"),
        ended=headers.get("Benchpool-Log-Ended") == "true",
    )


def error(status: int, headers: Mapping[str, str], body: bytes, url: str) -> errors.BenchpoolError:
    """Return the error of an answer, even without benchpool's error object.

    A proxy in front of a restarting scheduler answers with its own pages. A proxy that has just
    started does not know the pool's address yet, so the Hub answers with a page or a redirect.
    """
    try:
        details = msgspec.json.decode(body, type=ErrorAnswer).error
    except msgspec.DecodeError:
        if _is_hubs(status, headers, body):
            return errors.Unavailable(
                f"The pool is down: the Hub or a proxy answers at {url} (HTTP {status}). Try again "
                "in a minute. If this persists, check the address and the token.",
                code=NOT_BENCHPOOL,
            )
        return _without_object(status, url)
    kind = errors.BY_STATUS.get(status, errors.ServerFault)
    return kind(details.message, code=details.code, field=details.field, numbers=details.numbers)


def _is_hubs(status: int, headers: Mapping[str, str], body: bytes) -> bool:
    """Return whether a refusal is a page or a redirect of the Hub.

    The API sends no pages. Other redirects lead to a login, which means that the token is missing.
    """
    if 300 <= status < 400:
        return "/hub/services/" in headers.get("Location", "")
    return status in (403, 404, 405) and body.lstrip()[:1] == b"<"


LOOPBACK = ("localhost", "127.0.0.1", "::1")
"""Host names of this machine."""


def not_reachable(url: str, cause: str) -> errors.Unavailable:
    """Return the error for a service that does not answer."""
    here = urlsplit(url).hostname in LOOPBACK
    who = "have its operator run `benchpool up`"
    then = who if here else "ask an administrator of the pool"
    remedy = f"Try again in a minute. If this persists, {then}"
    return errors.Unavailable(
        f"benchpool at {url} is not reachable ({cause}). {remedy}, or name another service with "
        "--url or BENCHPOOL_URL.",
        code="not-reachable",
    )


SILENT = "no-answer"
"""Code of the error for a request that was accepted but not answered."""


def silent(url: str, call: Call[Any] | None = None) -> errors.Unavailable:
    """Return the error for a service that accepts a request and does not answer."""
    if call is None or not call.operation.audited:
        then = "Try again in a minute"
    elif call.has_key:
        then = "Try again in a minute; requests with the same key count once"
    else:
        then = "It may still be done; check before you repeat it"
    return errors.Unavailable(
        f"benchpool at {url} took the request and does not answer. {then}.", code=SILENT
    )


TOO_LARGE = 413
_MEANINGS: Mapping[int, type[errors.BenchpoolError]] = {
    TOO_LARGE: errors.TooLarge,
    429: errors.TooMany,
}


def _without_object(status: int, url: str) -> errors.BenchpoolError:
    if 300 <= status < 400 or status in (401, 403):
        return errors.NotAuthenticated(
            f"{url} does not accept this token (HTTP {status}). Use a token of a user who may "
            "access the benchpool service, with --token or BENCHPOOL_TOKEN.",
            code=NOT_BENCHPOOL,
        )
    if status in _MEANINGS:
        then = "Send less" if status == TOO_LARGE else "Try again in a minute"
        return _MEANINGS[status](f"A proxy at {url} refused the request (HTTP {status}). {then}.")
    return not_reachable(url, f"HTTP {status} from another server")
