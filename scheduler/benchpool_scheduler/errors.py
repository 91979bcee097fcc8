"""The errors that benchpool shows to people, and how they travel.

    BenchpoolError            never raised itself
    ├── InvalidInput          400/422, exit 2: a field is wrong
    ├── NotAuthenticated      401, exit 3
    ├── Refused               403/409, exit 3: a rule (quota, rights, state) says no
    ├── NotFound              404, exit 2
    ├── TooSlow               408, exit 4: the body does not come
    ├── TooLarge              413, exit 2
    ├── TooMany               429, exit 3
    ├── Unavailable           503, exit 4: nothing is wrong with the request; try again
    └── ServerFault           500, exit 1: a fault of benchpool itself; its log has the detail

Every error carries one sentence for the reader (what is wrong, the number and the limit, what to
do), a stable code, the field it is about, and the numbers as data. Internal detail never goes
into an error of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

Number = int | float | str | None


class BenchpoolError(Exception):
    """Base of all errors whose text is meant for the user.

    Args:
        message: One sentence with the number and the limit, ending in what to do.
        code: A stable word from the reference, e.g. ``build-quota``.
        field: The name of the input field that is wrong, if there is one.
        numbers: The figures of the sentence as data.
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
        """Return what a notebook shows of it: the sentence, without the way through our client.

        IPython asks an exception for this by this name. Elsewhere the traceback is Python's own.
        """
        return [f"{type(self).__name__}: {self.message}"]

    def as_json(self) -> dict[str, object]:
        """Return the one error object of command line and HTTP (formats, section 5)."""
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
    """No token, or one that the Hub does not know."""

    http_status = 401
    exit_status = 3
    default_code = "not-authenticated"


class Refused(BenchpoolError):
    """A rule says no: quota, rights, or the state the object is in."""

    http_status = 409
    exit_status = 3
    default_code = "refused"


class Forbidden(Refused):
    """The caller may see the thing but not do this to it."""

    http_status = 403
    default_code = "forbidden"


class NotFound(BenchpoolError):
    """There is no such thing, or the caller may not know of it."""

    http_status = 404
    exit_status = 2
    default_code = "not-found"


class TooSlow(BenchpoolError):
    """The rest of the request did not come in time."""

    http_status = 408
    exit_status = 4
    default_code = "too-slow"


class TooLarge(BenchpoolError):
    """The input is larger than its limit."""

    http_status = 413
    exit_status = 2
    default_code = "too-large"


class TooMany(BenchpoolError):
    """More at once than the limit allows."""

    http_status = 429
    exit_status = 3
    default_code = "too-many"


class Unavailable(BenchpoolError):
    """The service is not reachable, or for the moment has no room."""

    http_status = 503
    exit_status = 4
    default_code = "unavailable"


class ServerFault(BenchpoolError):
    """A fault of benchpool itself: the sentence names the log entry that has the detail."""

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
"""The class that a client raises for an HTTP status."""
