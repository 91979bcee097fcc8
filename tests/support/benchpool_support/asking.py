"""Facts of a job for tests, with the requested resources beside the other fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchpool_scheduler.contract.spec import JobSpec


def asking(facts: Mapping[str, Any], **usual: Any) -> dict[str, Any]:
    """Return facts of a job with the requested resources in its ``spec``.

    A gang without a given minimum size may run with one worker.

    >>> found = asking({"gpus": 2, "user": "susan"})
    >>> found["spec"].gpus, found["user"]
    (2, 'susan')
    """
    names = JobSpec.__struct_fields__
    asked = {"min_workers": 1} | usual | {k: v for k, v in facts.items() if k in names}
    return {k: v for k, v in facts.items() if k not in names} | {"spec": JobSpec(**asked)}
