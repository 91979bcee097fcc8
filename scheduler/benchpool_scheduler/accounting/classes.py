"""Classes of GPU time, and the recorded kinds of GPU use."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from benchpool_scheduler.contract.use import UseClass


class GpuUseKind(StrEnum):
    """Recorded use of a GPU, exact at each change."""

    BENCH = "bench"
    PREPARING = "preparing"  # assigned to a worker that does not run yet
    TRAINING = "training"
    RESERVED = "reserved"
    WANTED = "wanted"  # free, and a waiting job would have fitted
    FREE = "free"
    FOREIGN = "foreign"
    BROKEN = "broken"
    UNRECORDED = "unrecorded"


TITLES: Mapping[UseClass, str] = {
    UseClass.COMPUTING: "computing",
    UseClass.IDLE_BENCH: "idle on a bench",
    UseClass.IDLE_TRAINING: "idle in training",
    UseClass.STARTING: "starting",
    UseClass.LOST: "lost to pauses",
    UseClass.NOT_MEASURED: "held but not measured",
    UseClass.WANTED: "free though wanted",
    UseClass.FREE: "free",
    UseClass.RESERVED: "reserved for benches",
    UseClass.FOREIGN: "used by others",
    UseClass.BROKEN: "broken or closed",
    UseClass.NOT_RECORDED: "not recorded",
}
"""Display names of the classes."""

MEANINGS: Mapping[UseClass, str] = {
    UseClass.COMPUTING: "Held by a bench or a job, and a kernel ran on the GPU.",
    UseClass.IDLE_BENCH: "Held by a bench, and no kernel ran.",
    UseClass.IDLE_TRAINING: "Held by a running worker, and no kernel ran.",
    UseClass.STARTING: (
        "Given to a worker that did not run yet, or that ran and had not started its first kernel, "
        "for at most 15 minutes."
    ),
    UseClass.LOST: "Held by a job between its last save and the pause that stopped it.",
    UseClass.NOT_MEASURED: "Held by a bench or a worker, without a sample of the GPU's use.",
    UseClass.WANTED: "Free while a job waited that would have fitted and that no limit held back.",
    UseClass.FREE: "Free, and no waiting job could have run on it.",
    UseClass.RESERVED: "Kept free for benches.",
    UseClass.FOREIGN: "Used by processes outside benchpool.",
    UseClass.BROKEN: "Broken, or on a machine that was closed.",
    UseClass.NOT_RECORDED: "benchpool did not run, and the holder of the GPU is not recorded.",
}
"""Meaning of each class; printed in the reference."""

UNHELD: Mapping[GpuUseKind, UseClass] = {
    GpuUseKind.PREPARING: UseClass.STARTING,
    GpuUseKind.RESERVED: UseClass.RESERVED,
    GpuUseKind.WANTED: UseClass.WANTED,
    GpuUseKind.FREE: UseClass.FREE,
    GpuUseKind.FOREIGN: UseClass.FOREIGN,
    GpuUseKind.BROKEN: UseClass.BROKEN,
    GpuUseKind.UNRECORDED: UseClass.NOT_RECORDED,
}
"""Classes that need no samples."""

IDLE: Mapping[GpuUseKind, UseClass] = {
    GpuUseKind.BENCH: UseClass.IDLE_BENCH,
    GpuUseKind.TRAINING: UseClass.IDLE_TRAINING,
}
"""Classes of time without a kernel while a bench or a running worker holds the GPU."""

WASTED = (UseClass.IDLE_BENCH, UseClass.IDLE_TRAINING, UseClass.STARTING, UseClass.LOST)
"""Classes of time in which a GPU was held without a result."""

HELD = (
    UseClass.COMPUTING,
    UseClass.IDLE_BENCH,
    UseClass.IDLE_TRAINING,
    UseClass.STARTING,
    UseClass.LOST,
    UseClass.NOT_MEASURED,
)
"""Classes of time in which a bench or a job held the GPU."""


def computed_part(gpu_h: Mapping[UseClass, float]) -> float | None:
    """Return the share of the held GPU time in which kernels ran, or None if it is unknown.

    >>> computed_part({UseClass.COMPUTING: 2.0, UseClass.IDLE_BENCH: 2.0, UseClass.NOT_MEASURED: 9})
    0.5
    >>> computed_part({UseClass.NOT_MEASURED: 9.0, UseClass.FREE: 1.0}) is None
    True
    """
    known = sum(gpu_h.get(one, 0.0) for one in HELD if one is not UseClass.NOT_MEASURED)
    only_started = known <= gpu_h.get(UseClass.STARTING, 0.0)  # this class needs no sample
    return None if only_started else gpu_h.get(UseClass.COMPUTING, 0.0) / known
