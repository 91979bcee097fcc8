"""The classes of GPU time, and what a GPU was recorded to be doing."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from benchpool_scheduler.contract.use import UseClass


class GpuUseKind(StrEnum):
    """What somebody does with a GPU, or nobody: recorded at each change, exactly."""

    BENCH = "bench"
    PREPARING = "preparing"  # given to a worker that does not run yet
    TRAINING = "training"
    RESERVED = "reserved"
    WANTED = "wanted"  # free, and a job waited that would have fitted
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
"""What people read."""

MEANINGS: Mapping[UseClass, str] = {
    UseClass.COMPUTING: "Held by a bench or a job, and a kernel ran on the GPU.",
    UseClass.IDLE_BENCH: "Held by a bench, and no kernel ran.",
    UseClass.IDLE_TRAINING: "Held by a running worker, and no kernel ran.",
    UseClass.STARTING: (
        "Given to a worker that did not run yet, or that ran and had not started its first kernel, "
        "for at most 15 minutes."
    ),
    UseClass.LOST: "Held by a job between its last save and the pause that stopped it.",
    UseClass.NOT_MEASURED: "Held by a bench or a worker, and no sample says what the GPU did.",
    UseClass.WANTED: "Free while a job waited that would have fitted and that no limit held back.",
    UseClass.FREE: "Free, and nobody waited who could have run on it.",
    UseClass.RESERVED: "Kept free for benches.",
    UseClass.FOREIGN: "Used by processes that are not benchpool's.",
    UseClass.BROKEN: "Out of order, or on a machine that was closed.",
    UseClass.NOT_RECORDED: "benchpool did not run, and no record says who held the GPU.",
}
"""What each class means; the reference prints it."""

UNHELD: Mapping[GpuUseKind, UseClass] = {
    GpuUseKind.PREPARING: UseClass.STARTING,
    GpuUseKind.RESERVED: UseClass.RESERVED,
    GpuUseKind.WANTED: UseClass.WANTED,
    GpuUseKind.FREE: UseClass.FREE,
    GpuUseKind.FOREIGN: UseClass.FOREIGN,
    GpuUseKind.BROKEN: UseClass.BROKEN,
    GpuUseKind.UNRECORDED: UseClass.NOT_RECORDED,
}
"""The classes that need no samples."""

IDLE: Mapping[GpuUseKind, UseClass] = {
    GpuUseKind.BENCH: UseClass.IDLE_BENCH,
    GpuUseKind.TRAINING: UseClass.IDLE_TRAINING,
}
"""What time without a kernel is called where a bench or a running worker holds the GPU."""

WASTED = (UseClass.IDLE_BENCH, UseClass.IDLE_TRAINING, UseClass.STARTING, UseClass.LOST)
"""The classes of time that somebody had a GPU and that came to nothing."""

HELD = (
    UseClass.COMPUTING,
    UseClass.IDLE_BENCH,
    UseClass.IDLE_TRAINING,
    UseClass.STARTING,
    UseClass.LOST,
    UseClass.NOT_MEASURED,
)
"""The classes of time that a bench or a job had the GPU."""


def computed_part(gpu_h: Mapping[UseClass, float]) -> float | None:
    """Return in what part of the time that GPUs were held kernels ran, as far as it is known.

    >>> computed_part({UseClass.COMPUTING: 2.0, UseClass.IDLE_BENCH: 2.0, UseClass.NOT_MEASURED: 9})
    0.5
    >>> computed_part({UseClass.NOT_MEASURED: 9.0, UseClass.FREE: 1.0}) is None
    True
    """
    known = sum(gpu_h.get(one, 0.0) for one in HELD if one is not UseClass.NOT_MEASURED)
    only_started = known <= gpu_h.get(UseClass.STARTING, 0.0)  # that needs no sample
    return None if only_started else gpu_h.get(UseClass.COMPUTING, 0.0) / known
