"""``@benchpool.remote``: a function that runs here when called, and can be submitted to the pool.

Jobs import this module too, in their own Python, so it uses the standard library of 3.9.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

if TYPE_CHECKING:
    from benchpool.functions.sent_jobs import SentJobs
    from benchpool.handles import JobHandle

R = TypeVar("R")


class RemoteFunction(Generic[R]):
    """Function with the options of its jobs. A plain call runs it here."""

    def __init__(self, function: Callable[..., R], asked: Mapping[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.__wrapped__ = function
        self.asked = dict(asked)
        """Options of ``benchpool.submit``, by name."""

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        """Run the function here."""
        return self.__wrapped__(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """Bind as a method if defined in a class. A bound method cannot be submitted."""
        return self if instance is None else functools.partial(self.__wrapped__, instance)

    def submit(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Submit this call to the pool. All arguments are passed to the function.

        Raises:
            InvalidInput: The job cannot get something that the function needs.
            Refused: A rule of the pool rejects the job.
        """
        job: JobHandle = _sending().submit_call(self, args, kwargs, self.asked)
        return job

    def map(self, calls: Iterable[Any], *, most: int | None = None) -> SentJobs:
        """Submit one job for each element of ``calls``; see ``benchpool.map``."""
        jobs: SentJobs = _sending().map(self, calls, most=most, **self.asked)
        return jobs

    def options(self, **asked: Any) -> RemoteFunction[R]:
        """Return the same function with other options for its jobs: ``train.options(gpus=4)``."""
        return RemoteFunction(self.__wrapped__, {**self.asked, **asked})

    def __repr__(self) -> str:
        keywords = ", ".join(f"{name}={value!r}" for name, value in self.asked.items())
        return f"<{self.__wrapped__.__qualname__}, remote({keywords})>"


@overload
def remote(function: Callable[..., R], /) -> RemoteFunction[R]: ...


@overload
def remote(**asked: Any) -> Callable[[Callable[..., R]], RemoteFunction[R]]: ...


def remote(function: Callable[..., Any] | None = None, /, **asked: Any) -> Any:
    """Make a function submittable: ``@benchpool.remote(gpus=2)``, then ``train.submit(lr=0.1)``.

    A plain call still runs here. The arguments are the options of ``benchpool.submit``.

    >>> @remote(gpus=2)
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> double(4), double
    (8, <double, remote(gpus=2)>)
    """
    if function is not None:
        return RemoteFunction(function, asked)
    return lambda each: RemoteFunction(each, asked)


def _sending() -> Any:
    """Return the module that sends functions, here or in a kernel without benchpool."""
    try:
        return import_module("benchpool.functions.sending")
    except ModuleNotFoundError:
        return import_module("benchpool.foreign.functions")
