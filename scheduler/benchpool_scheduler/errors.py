"""Errors that benchpool shows to users, with their HTTP and exit statuses.

    BenchpoolError            never raised itself
    ├── InvalidInput          400/422, exit 2: a field is wrong
    ├── NotAuthenticated      401, exit 3
    ├── Refused               403/409, exit 3: a rule (quota, rights, state) rejects the request
    ├── NotFound              404, exit 2
    ├── TooSlow               408, exit 4: the body did not arrive in time
    ├── TooLarge              413, exit 2
    ├── TooMany               429, exit 3
    ├── Unavailable           503, exit 4: the request is valid; retry
    └── ServerFault           500, exit 1: an internal error; the log has the details

Every error has a sentence for the user (cause, number and limit, remedy), a stable code, the field
that it concerns, and the numbers as data. Internal details never appear in these errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

Number = int | float | str | None


class BenchpoolError(Exception):
    """Base class of all errors with a text for the user.

    Args:
        message: One sentence with the number and the limit, ending with the remedy.
        code: Stable code from the reference, e.g. ``build-quota``.
        field: Name of the wrong input field, if any.
        numbers: Numbers of the sentence as data.
    """

    http_status: ClassVar[int] = 500
    exit_status: ClassVar[int] = 1
    default_code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        field: str | None = None,
        numbers: Mapping[str, Number] | None = None,
    ) -> None:
        if type(self) is BenchpoolError:
            raise TypeError("raise one of the subclasses of BenchpoolError")
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.field = field
        self.numbers: dict[str, Number] = dict(numbers or {})

    def _render_traceback_(self) -> list[str]:
        """Return the display in a notebook: the sentence, without the client's stack frames.

        IPython calls this method of an exception. Elsewhere Python's own traceback is shown.
        """
        return [f"{type(self).__name__}: {self.message}"]

    def as_json(self) -> dict[str, object]:
        """Return the error object of command line and HTTP (formats, section 5)."""
        return {
            "error": {
                "code": self.code,
                "message": self.message,
                "field": self.field,
                "numbers": self.numbers,
            }
        }


class InvalidInput(BenchpoolError):
    """A field is missing, of the wrong type, or out of its range."""

    http_status = 422
    exit_status = 2
    default_code = "invalid-input"


class NotAuthenticated(BenchpoolError):
    """The token is missing, or the Hub does not know it."""

    http_status = 401
    exit_status = 3
    default_code = "not-authenticated"


class Refused(BenchpoolError):
    """A rule rejects the request: quota, rights, or the state of the object."""

    http_status = 409
    exit_status = 3
    default_code = "refused"


class Forbidden(Refused):
    """The caller may see the object but may not do this to it."""

    http_status = 403
    default_code = "forbidden"


class NotFound(BenchpoolError):
    """The object does not exist, or the caller may not know of it."""

    http_status = 404
    exit_status = 2
    default_code = "not-found"


class TooSlow(BenchpoolError):
    """The rest of the request did not arrive in time."""

    http_status = 408
    exit_status = 4
    default_code = "too-slow"


class TooLarge(BenchpoolError):
    """The input is larger than its limit."""

    http_status = 413
    exit_status = 2
    default_code = "too-large"


class TooMany(BenchpoolError):
    """The request exceeds a limit, such as a rate or a number of jobs."""

    http_status = 429
    exit_status = 3
    default_code = "too-many"


class Unavailable(BenchpoolError):
    """The service is unreachable or temporarily overloaded."""

    http_status = 503
    exit_status = 4
    default_code = "unavailable"


class ServerFault(BenchpoolError):
    """An internal error of benchpool; the sentence names the log entry with the details."""

    http_status = 500
    exit_status = 1
    default_code = "server-fault"


BY_STATUS: Mapping[int, type[BenchpoolError]] = {
    400: InvalidInput,
    401: NotAuthenticated,
    403: Forbidden,
    404: NotFound,
    408: TooSlow,
    409: Refused,
    413: TooLarge,
    422: InvalidInput,
    429: TooMany,
    500: ServerFault,
    503: Unavailable,
}
"""Exception class that a client raises for an HTTP status."""
