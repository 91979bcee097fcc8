"""``@benchpool.remote``: a function that is called here and submitted to the pool.

Jobs import this as well, in whatever Python they run with: the standard library, of 3.9.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from benchpool.functions.sent_jobs import SentJobs
    from benchpool.handles import JobHandle

R = TypeVar("R")


class RemoteFunction(Generic[R]):
    """A function with what its jobs ask for. Calling it runs it here, as if it stood alone."""

    def __init__(self, function: Callable[..., R], asked: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.asked = dict(asked)
        """Options of ``benchpool.submit``, by name."""

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Run it here."""
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Be a method where it stands in a class; a method is not sent by itself."""
        return self if instance is None else functools.partial(self.__wrapped__, instance)

    def submit(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Send this call to the pool; all arguments are those of the function.

        Raises:
            InvalidInput: What it needs cannot be had in a job. Refused: A rule of the pool says no.
        """
        from benchpool.functions import sending

        return sending.submit(self, args, kwargs, self.asked)

    def map(self, calls: Iterable[Any], *, most: int | None = None) -> SentJobs:
        """Send one job for each element of ``calls``; see ``benchpool.map``."""
        from benchpool.functions import sending

        return sending.map(self, calls, most=most, **self.asked)

    def options(self, **asked: Any) -> RemoteFunction[R]:
        """Return the same function asking for something else: ``train.options(gpus=4)``."""
        return RemoteFunction(self.__wrapped__, {**self.asked, **asked})

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.asked.items())
        return f"<{self.__wrapped__.__qualname__}, remote({said})>"


@overload
def remote(function: Callable[..., R], /) -> RemoteFunction[R]: ...


@overload
def remote(**asked: Any) -> Callable[[Callable[..., R]], RemoteFunction[R]]: ...


def remote(function: Callable[..., Any] | None = None, /, **asked: Any) -> Any:
    """Let a function be sent: ``@benchpool.remote(gpus=2)``, then ``train.submit(lr=0.1)``.

    A plain call still runs here. What its jobs ask for is said by the options of ``submit``.

    >>> @remote(gpus=2)
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> double(4), double
    (8, <double, remote(gpus=2)>)
    """
    if function is not None:
        return RemoteFunction(function, asked)
    return lambda each: RemoteFunction(each, asked)
