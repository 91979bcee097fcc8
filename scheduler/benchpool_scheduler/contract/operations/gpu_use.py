"""The operations on what GPUs really do."""

from __future__ import annotations

from benchpool_scheduler.contract.gpu_use import GpuUse, GpuUseQuery
from benchpool_scheduler.contract.operation import Given, given, operation


class GpuUseOperations:
    """What GPUs really do, to look at."""

    @operation("GET", "gpus", list[GpuUse], query=GpuUseQuery, lab=True, tool=True)
    def gpu_use(self, *, mine: bool = False) -> Given:
        """Read what GPUs really do.

        As measured last: activity, memory, power, and since when they have been idle.
        """
        return given(query={"mine": True if mine else None})
