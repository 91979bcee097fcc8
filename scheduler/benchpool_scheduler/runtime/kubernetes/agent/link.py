"""HTTP to the scheduler: one connection for each ``Link``, with retries."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import threading

TIMEOUT_S = 30.0
FIRST_S = 0.2
LONGEST_S = 10.0
PIECE = 1 << 20

Answer = TypeVar("Answer")


class LinkRefused(Exception):
    """The scheduler rejected the request; a retry would not help."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class LinkAway(Exception):
    """The scheduler did not answer within the timeout."""


class Link:
    """Client of the scheduler for one worker; not thread-safe.

    Args:
        url: The scheduler's address up to and including ``/workers``.
        path: Path of this worker below ``url``. ``token``: authenticates it.
        ended: Event that ends the wait between retries.
    """

    def __init__(self, url: str, path: str, token: str, ended: threading.Event) -> None:
        at = urlsplit(url)
        self._secure = at.scheme == "https"
        self._host = at.hostname or "localhost"
        self._port = at.port
        self._root = f"{at.path}/{path}/"
        self._token = f"Bearer {token}"
        self._ended = ended
        self._connection: http.client.HTTPConnection | None = None

    def get(self, path: str, *, patience_s: float = 0.0, timeout_s: float = TIMEOUT_S) -> bytes:
        """Return an answer. Raises LinkRefused, or LinkAway after ``patience_s`` without one."""
        return self._patiently(lambda: self._once("GET", path, None, {}, timeout_s), patience_s)

    def post(self, path: str, data: bytes, *, patience_s: float = 0.0) -> bytes:
        """Send bytes and return the answer. Raises LinkRefused or LinkAway."""
        headers = {"Content-Type": "application/octet-stream"}
        return self._patiently(
            lambda: self._once("POST", path, data, headers, TIMEOUT_S), patience_s
        )

    def put(self, path: str, file: IO[bytes], length: int, *, patience_s: float = 0.0) -> bytes:
        """Send a file from its beginning and return the answer. Raises LinkRefused or LinkAway."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(length)}

        def send() -> bytes:
            file.seek(0)
            return self._once("PUT", path, file, headers, 600.0)

        return self._patiently(send, patience_s)

    def fetch(self, path: str, target: str, patience_s: float) -> bool:
        """Write an answer to a file; return False if there is none.

        Raises LinkRefused, LinkAway or OSError.
        """
        return self._patiently(lambda: self._download(path, target), patience_s)

    # --------------------------------------------------------------------------- once

    def _patiently(self, call: Callable[[], Answer], patience_s: float) -> Answer:
        begun, tries = time.monotonic(), 0
        while True:
            tries += 1
            try:
                return call()
            except (OSError, http.client.HTTPException, LinkAway) as failed:
                self._close()
                bound = min(LONGEST_S, FIRST_S * 2 ** min(tries, 10))
                wait = bound * (0.5 + random.random() / 2)  # noqa: S311
                if time.monotonic() - begun + wait > patience_s or self._ended.wait(wait):
                    raise LinkAway(f"the scheduler does not answer: {failed}") from failed

    def _once(
        self,
        method: str,
        path: str,
        body: bytes | IO[bytes] | None,
        headers: dict[str, str],
        timeout_s: float,
    ) -> bytes:
        connection = self._open(timeout_s)
        connection.request(method, self._root + path, body, self._with_token(headers))
        answer = connection.getresponse()
        text = answer.read()
        _check(answer.status, text)
        return text

    def _download(self, path: str, target: str) -> bool:
        connection = self._open(TIMEOUT_S)
        connection.request("GET", self._root + path, headers=self._with_token({}))
        answer = connection.getresponse()
        if answer.status == 404:
            answer.read()
            return False
        if answer.status >= 300:
            _check(answer.status, answer.read())
        with open(target, "wb") as file:
            while piece := answer.read(PIECE):
                file.write(piece)
        return True

    def _with_token(self, headers: dict[str, str]) -> dict[str, str]:
        return {"Authorization": self._token, **headers}

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._connection is None:
            kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
            self._connection = kind(self._host, self._port, timeout=timeout_s)
        self._connection.timeout = timeout_s
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout_s)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _check(status: int, text: bytes) -> None:
    if status < 300:
        return
    message = text[:500].decode(errors="replace")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        message = str(json.loads(text)["error"]["message"])
    if status in (408, 425, 429) or status >= 500:
        raise LinkAway(f"status {status}: {message}")
    raise LinkRefused(status, message)
