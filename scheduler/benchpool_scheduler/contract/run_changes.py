"""Comparison and repetition of runs: request bodies and answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class RunChange(Struct, frozen=True):
    """Difference between two runs. A side without the item is null."""

    area: str
    name: str
    before: str | None
    after: str | None


class JobAgain(Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``again``. A repeated request with the same key returns the same job."""

    key: (
        Annotated[str, Meta(min_length=1, max_length=200, description="Same key, same job.")] | None
    ) = None


class RunChangesQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Job to compare with."""

    than: (
        Annotated[
            str,
            Meta(
                description="The other job; by default the previous submission of the same user, "
                "project and name, preferably with the same code and options.",
                max_length=26,
            ),
        ]
        | None
    ) = None


class RunChanges(Struct, frozen=True):
    """Differences of job ``after`` from job ``before``, which is null where there is none.

    ``code`` is the difference of the code in lines, and ``note`` explains an empty one.
    ``unrecorded`` names the jobs of the two whose environment was not recorded.
    """

    before: str | None
    after: str
    changes: list[RunChange] = []
    code: list[str] = []
    note: str = ""
    unrecorded: list[str] = []
