"""Lookup of the job or other record that a caller names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.errors import InvalidInput, NotFound
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.ledger.job_index import PREFIX
from benchpool_scheduler.service.ledger.ledger import Ledger
from benchpool_scheduler.store.records import JobRecord

A = TypeVar("A")


class Owned(Protocol):
    """Record that belongs to a user and a project."""

    @property
    def id(self) -> str: ...
    @property
    def user(self) -> str: ...
    @property
    def project(self) -> str: ...


R = TypeVar("R", bound=Owned, covariant=True)


class RecordBook(Protocol[R]):
    """Collection of all records of a kind."""

    def get(self, ref: str, /) -> R | None:
        """Return the record with this exact ID, or None."""
        ...

    def all(self) -> Iterable[R]:
        """Return all records."""
        ...


def visible_job(
    ledger: Ledger, configuration: Configuration, caller: Caller, job: str
) -> JobRecord:
    """Return a job that the caller may see, by its ID or a unique prefix.

    Errors: NotFound; InvalidInput ``ambiguous-id`` if several visible jobs match.
    """
    exact = ledger.job(job)
    if exact is not None:
        matching = [exact]
    else:
        matching = ledger.job_index.beginning(job) if len(job) >= PREFIX else []
    found = [it for it in matching if rights.may_use(caller, it, configuration)]
    return the_one(found, job, "jobs", rights.no_job(job))


def visible_record(
    book: RecordBook[R], configuration: Configuration, caller: Caller, ref: str, kind: str
) -> R:
    """Return a record that the caller may see, by its ID or a unique prefix.

    Args:
        kind: Plural name of the records; also the command that lists them.

    Errors: NotFound; InvalidInput ``ambiguous-id``.
    """
    exact = book.get(ref)
    matching = [exact] if exact else []
    if exact is None and len(ref) >= PREFIX:
        matching = [it for it in book.all() if it.id.startswith(ref)]
    found = [it for it in matching if rights.may_use_of(caller, it.user, it.project, configuration)]
    text = (
        f"There is no {kind.removesuffix('s')} with the id {ref[:40]!r} that you may see; "
        f"`benchpool {kind} --all` lists ids."
    )
    return the_one(found, ref, kind, NotFound(text, field="id"))


def the_one(found: Sequence[A], ref: str, kind: str, missing: NotFound, field: str = "id") -> A:
    """Return the only element. Errors: ``missing`` if there is none; InvalidInput
    ``ambiguous-id``.
    """
    if len(found) > 1:
        raise InvalidInput(
            f"{len(found)} {kind} begin with {ref!r}; write more characters of the id.",
            code="ambiguous-id",
            field=field,
            numbers={kind.partition(" ")[0]: len(found)},
        )
    if not found:
        raise missing
    return found[0]
