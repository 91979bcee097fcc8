"""Refusals of starts, and their display to the user everywhere in JupyterHub.

A refusal is not a fault of the Hub. Neither JupyterHub 5 nor 6 counts it as one. Its text is the
same on the form, on the pending page, on the failed page and in the REST answer.
"""

from __future__ import annotations

from html import escape
from typing import Any, Literal

from benchpool_scheduler.errors import BenchpoolError, InvalidInput, Refused, TooMany, Unavailable

Reason = Literal[
    "gpu-options",
    "gpu-quota",
    "gpu-capacity",
    "gpu-policy",
    "gpu-scheduler",
    "home-folder",
    "server-name",
    "cluster-quota",
    "cluster-policy",
    "pod-start",
    "server-start",
    "site-settings",
]
"""Reasons of refusals: the closed list of labels in the Hub's metrics."""

try:
    from jupyterhub.spawner import SpawnException as _Base
except ImportError:  # JupyterHub 5
    from tornado.web import HTTPError

    class _Base(HTTPError):  # type: ignore[no-redef]
        """Replacement for JupyterHub 6's ``SpawnException`` on JupyterHub 5."""

        def __init__(
            self, message: str, *, reason: str, message_html: str = "", status_code: int = 400
        ) -> None:
            super().__init__(status_code, "%s", message, reason=reason)
            self.message = message
            self.message_html = message_html


class StartRefused(_Base):  # type: ignore[misc]
    """Start refused by a rule, by an invalid request or without a scheduler.

    Args:
        message: One sentence with numbers and a remedy.
        reason: Label in metrics.
        status_code: 400 wrong request, 409 refused by a rule, 503 try again.
        retry_after_s: Value of ``Retry-After`` in seconds, if a retry helps.

    >>> refusal = StartRefused("2 of 2 GPUs are held by <b>.", reason="gpu-quota")
    >>> refusal.status_code, refusal.jupyterhub_html_message
    (409, '2 of 2 GPUs are held by &lt;b&gt;.')
    """

    def __init__(
        self,
        message: str,
        *,
        reason: Reason,
        status_code: int = 409,
        retry_after_s: int | None = None,
    ) -> None:
        html = escape(message)
        super().__init__(message, reason=reason, message_html=html, status_code=status_code)
        # JupyterHub reads these where it does not recognise SpawnException.
        self.jupyterhub_message = message
        self.jupyterhub_html_message = html
        self.headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}

    def __str__(self) -> str:
        return str(self.jupyterhub_message)


def from_error(error: BenchpoolError) -> StartRefused:
    """Return the refusal of a start for an error of the scheduler.

    >>> str(from_error(Unavailable("The pool has 0 free GPUs.", code="build-full")))
    'The pool has 0 free GPUs.'
    """
    reason, status, retry = _KINDS.get(_kind(error), ("gpu-policy", 409, None))
    return StartRefused(error.message, reason=reason, status_code=status, retry_after_s=retry)


_KINDS: dict[str, tuple[Reason, int, int | None]] = {
    "input": ("gpu-options", 400, None),
    "quota": ("gpu-quota", 409, None),
    "rule": ("gpu-policy", 409, None),
    "capacity": ("gpu-capacity", 503, 60),
    "scheduler": ("gpu-scheduler", 503, 30),
}


def _kind(error: BenchpoolError) -> str:
    if isinstance(error, InvalidInput):
        return "input"
    if isinstance(error, Refused):
        return "quota" if error.code == "build-quota" else "rule"
    if isinstance(error, Unavailable | TooMany) and error.code.startswith(("build-", "line-")):
        return "capacity"
    return "scheduler"


def neutralise_failure_count(spawner: Any) -> None:
    """Keep JupyterHub 5 from counting this refusal as one of its consecutive failures.

    JupyterHub 5 counts every failed start and exits at the limit, which it reads from the spawner
    after the failure. JupyterHub 6 does not count refusals, so this has no effect there.
    """
    spawner.consecutive_failure_limit = 0


def name_taken(user: str, server: str) -> StartRefused:
    """Return the refusal of a server that the Hub would confuse with another user's."""
    if server:
        return StartRefused(
            f"The Hub would confuse server {server} of {user} with the server of another user "
            f"named {user}-{server}. Choose another name for it.",
            reason="server-name",
            status_code=409,
        )
    return StartRefused(
        f"The Hub would confuse the server of {user} with a running named server of another user. "
        "Ask an administrator to stop that one; the Hub's log names it.",
        reason="server-name",
        status_code=409,
    )
