"""Sparkline of the last hour: the mean of GPUs per minute, with gaps."""

from __future__ import annotations

from benchpool_scheduler.contract.gpu_use import GpuUse
from benchpool_scheduler.telemetry import ActivityBucket
from benchpool_scheduler.web.mine_view import headroom, sparkline

BEGIN, END = 0, 3600


def minute(number: int, share: float, gpu: str = "a") -> ActivityBucket:
    return ActivityBucket(gpu, number * 60, 60, 60.0, 60.0 * share, None, 0.0, simulated=False)


def use(used: float | None, total: float | None) -> GpuUse:
    return GpuUse(
        "a", 0, "H200", "n", simulated=False, memory_used_gib=used, memory_total_gib=total
    )


def test_sparkline_has_gap_for_missing_minutes() -> None:
    found = sparkline([minute(at, 1.0) for at in (0, 1, 2, 20, 21)], BEGIN, END)
    assert [len(line.split()) for line in found.lines] == [3, 2]
    assert found.lines[0].startswith("0.0,1.0 ")


def test_sparkline_averages_gpus_of_row() -> None:
    found = sparkline([minute(0, 1.0), minute(0, 0.0, "b"), minute(1, 0.5)], BEGIN, END)
    assert found.lines == ("0.0,16.0 2.7,16.0",)
    assert found.words == "last hour: 50 % active in the mean, 50 % at least, 50 % at most"


def test_sparkline_omits_values_before_last_hour() -> None:
    found = sparkline([minute(-1, 1.0)], BEGIN, END)
    assert (found.lines, found.words) == ((), "no measurements in the last hour")


def test_headroom_is_smallest_free_gpu_memory() -> None:
    assert headroom([use(10, 80), use(78.5, 80)]) == "78 of 80 GB, 2 free on the fullest GPU"
    assert headroom([use(None, 80)]) == "not measured"
