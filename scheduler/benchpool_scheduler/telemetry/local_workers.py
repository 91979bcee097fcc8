"""Sampler of workers and benches that are processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchpool_scheduler.telemetry.process_meter import Of, ProcessMeter
from benchpool_scheduler.telemetry.processes import ProcessRoot, of_benches, of_worker
from benchpool_scheduler.telemetry.sampler import HeldProcesses
from benchpool_scheduler.telemetry.samples import WorkerSample
from benchpool_scheduler.worker.folders import Folders
from benchpool_scheduler.worker.worker_id import WorkerId

LOOK_FOR_BENCHES_S = 60.0


class LocalWorkers:
    """Sampler of local processes; see the port ``WorkerSampler``.

    The root of a process tree is looked up again only when necessary.
    """

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._meter = ProcessMeter()
        self._known: dict[Of, ProcessRoot] = {}
        self._looked_at = float("-inf")

    def sample_workers(self, held: Sequence[HeldProcesses], now: float) -> Sequence[WorkerSample]:
        """Return the use of each worker and bench since the last call."""
        roots = self._find(held, now)
        trees = {it.of: (roots[it.of], it.cpus) for it in held if it.of in roots}
        return self._meter.sample(trees, now)

    def _find(self, held: Sequence[HeldProcesses], now: float) -> Mapping[Of, ProcessRoot]:
        wanted = {it.of: it for it in held}
        self._known = {of: root for of, root in self._known.items() if of in wanted}
        for of in wanted:
            if isinstance(of, WorkerId) and of not in self._known:
                root = of_worker(self._folders, of)
                if root is not None:
                    self._known[of] = root
        if now - self._looked_at >= LOOK_FOR_BENCHES_S:
            self._looked_at = now
            benches = {it.of: it.gpus for it in held if isinstance(it.of, str) and it.gpus}
            self._known.update(of_benches(benches))
        return self._known
