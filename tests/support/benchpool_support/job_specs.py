"""Random ``JobSpec`` objects from the bounds that the fields declare, including new fields."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct, inspect

from benchpool_scheduler.contract.spec import JobSpec

FIRST, LAST = datetime(2026, 1, 1), datetime(2099, 1, 1)  # noqa: DTZ001 (the zone comes after)
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def values(kind: inspect.Type) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a type within its bounds; small values are likelier."""
    match kind:
        case inspect.Metadata():
            return values(kind.type)
        case inspect.BoolType():
            return st.booleans()
        case inspect.IntType():
            return st.integers(kind.ge or 0, min(kind.le or 9, 1000))
        case inspect.FloatType():
            return st.integers(int(kind.ge or 0), int(kind.le or 64)).map(float)
        case inspect.StrType():
            return st.text(LETTERS, min_size=kind.min_length or 0, max_size=12)
        case inspect.VarTupleType():
            most = min(kind.max_length or 3, 3)
            return st.lists(values(kind.item_type), max_size=most).map(tuple)
        case inspect.EnumType():
            return st.sampled_from(list(kind.cls))
        case inspect.DateTimeType():
            return st.datetimes(min_value=FIRST, max_value=LAST, timezones=st.just(UTC)).map(
                lambda at: at.replace(microsecond=0)
            )
        case inspect.NoneType():
            return st.none()
        case inspect.UnionType():
            return st.one_of([values(one) for one in kind.types])
    raise TypeError(f"no strategy for {kind}")


def fields_of(record: type[Struct]) -> dict[str, st.SearchStrategy[Any]]:
    """Return a strategy for each field of a record."""
    found = inspect.type_info(record)
    assert isinstance(found, inspect.StructType)
    return {field.name: values(field.type) for field in found.fields}


def fields() -> dict[str, st.SearchStrategy[Any]]:
    """Return a strategy for each field of ``JobSpec``."""
    return fields_of(JobSpec)


def job_specs() -> st.SearchStrategy[JobSpec]:
    """Return a strategy for job specs whose minimum of workers does not exceed their number."""
    return st.builds(JobSpec, **fields()).filter(
        lambda spec: spec.min_workers is None or spec.min_workers <= spec.workers
    )
