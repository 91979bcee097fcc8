"""Changes with which a waiting job would start now: fewer GPUs, another GPU model (R22).

Each piece of advice is tried on the state after the pass before it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from operator import or_

from benchpool_scheduler.core.capacity.placement import fits
from benchpool_scheduler.core.cluster.cluster_state import ClusterState
from benchpool_scheduler.core.explain.sentences import Number
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import JobInfo, Requirements
from benchpool_scheduler.phrases import count


class Remedies:
    """Finds changes with which waiting jobs would start now, after one finished pass."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self._known: dict[tuple[Requirements, int], bool] = {}
        self._free: dict[int, int] = {}

    def advice(self, info: JobInfo, numbers: dict[str, Number]) -> str:
        """Return tested advice, and add what it names to ``numbers``."""
        ways = []
        if (smaller := self._would_start_with(info)) is not None:
            numbers["would_start_with"] = smaller
            each = " for each worker" if info.least > 1 else ""
            ways.append(f"with {count(smaller, 'GPU')}{each}")
        if (model := self._would_start_on(info)) is not None:
            numbers["would_start_on"] = ", ".join((*info.spec.gpu_models, model))
            ways.append(f"if it accepted the GPU model {model} too")
        if ways:
            return f"it would start now {', or '.join(ways)}"
        return "it starts by itself when enough GPUs become free"

    def _would_start_on(self, info: JobInfo) -> str | None:
        """Return another GPU model on which the job would start now, or None."""
        if not info.spec.gpu_models:
            return None
        ledger, core = self.state.ledger, info.request.times(info.least)
        if ledger.bound(info, core, releasing=False) is not None:
            return None
        others = (model for model in self._models if model not in info.spec.gpu_models)
        return next((model for model in others if self._fits_on(info, model)), None)

    @cached_property
    def _models(self) -> list[str]:
        """Return the GPU models of the pool, sorted by name."""
        return sorted({node.gpu_model for node in self.state.nodes if node.gpu_model})

    def _would_start_with(self, info: JobInfo) -> int | None:
        """Return the most GPUs per worker with which the job would start now, or None."""
        if info.requirements.gpus < 2:
            return None
        ledger, workers = self.state.ledger, info.least
        for gpus in range(min(info.requirements.gpus - 1, self._most_for_one(info)), 0, -1):
            core = info.request._replace(gpus=gpus * WHOLE_GPU).times(workers)
            if ledger.bound(info, core, releasing=False) is None and self._fits_with(info, gpus):
                return gpus
        return None

    def _fits_with(self, info: JobInfo, gpus: int) -> bool:
        """Return whether the job would fit now with ``gpus`` GPUs per worker."""
        key = info.requirements._replace(gpus=gpus), info.least
        return self._fits(key, lambda: info.with_gpus(gpus))

    def _fits_on(self, info: JobInfo, model: str) -> bool:
        """Return whether the job would fit now on another GPU model."""
        if not self._with_free(info.requirements.gpus) & self._allowed(info, model):
            return False
        key = info.requirements._replace(models=(model,)), info.least
        return self._fits(key, lambda: info.with_models((model,)))

    def _allowed(self, info: JobInfo, model: str) -> int:
        """Return the nodes with this GPU model that the job may use, whatever is free on them."""
        return self.state.capacity.allowed(info.requirements, (model,))

    def _with_free(self, gpus: int) -> int:
        """Return the nodes on which at least ``gpus`` whole GPUs are free now."""
        known = self._free.get(gpus)
        if known is None:
            known = self._free[gpus] = reduce(or_, self.state.capacity.by_free[False][gpus:], 0)
        return known

    def _fits(self, key: tuple[Requirements, int], asking: Callable[[], JobInfo]) -> bool:
        """Return whether a job with a changed request would fit now. Results are cached by key."""
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = fits(asking(), key[1], self.state.capacity, releasing=False)
        return known

    def _most_for_one(self, info: JobInfo) -> int:
        """Return the most GPUs that are free on a node with CPUs and memory for one worker."""
        capacity, requirements = self.state.capacity, info.requirements
        nodes = 0
        for some in capacity.slots(
            requirements._replace(gpus=1), capacity.allowed(requirements), releasing=False
        ).values():
            nodes |= some
        buckets = capacity.by_free[False]
        return next((gpus for gpus in range(len(buckets) - 1, 0, -1) if buckets[gpus] & nodes), 0)
