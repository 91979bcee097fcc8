"""Operations on the measured use of GPUs."""

from __future__ import annotations

from benchpool_scheduler.contract.gpu_use import GpuUse, GpuUseQuery
from benchpool_scheduler.contract.operation import Given, given, operation


class GpuUseOperations:
    """Measured use of GPUs."""

    @operation("GET", "gpus", list[GpuUse], query=GpuUseQuery, lab=True, tool=True)
    def gpu_use(self, *, mine: bool = False) -> Given:
        """Read the measured use of GPUs.

        The latest measurements: activity, memory, power, and since when the GPUs have been idle.
        """
        return given(query={"mine": True if mine else None})
