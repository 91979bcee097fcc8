"""The pool as squares: which GPU does what, for whom (screens: answer first)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Gpu, GpuState, Job, Status
from benchpool_scheduler.phrases import count
from benchpool_scheduler.web.words import GPU_WORDS, StateWord


@dataclass(frozen=True, slots=True)
class GpuSquare:
    """One GPU. ``job`` is its job where the reader may see it; ``holder`` is text, else empty."""

    uuid: str
    index: int
    model: str
    memory: str
    state: GpuState
    word: StateWord
    holder: str
    job: Job | None
    note: str

    @property
    def label(self) -> str:
        """What a screen reader says of the square, and its label on hover."""
        facts = [f"GPU {self.index}", self.model, self.word.word, self.holder, self.note]
        return " · ".join(fact for fact in facts if fact)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """The GPUs of one node, in the order of their indices."""

    name: str
    summary: str
    squares: tuple[GpuSquare, ...]


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One state with how many GPUs are in it now."""

    state: GpuState
    word: StateWord
    gpus: int


@dataclass(frozen=True, slots=True)
class PoolView:
    """The pool's section: the sentence, the nodes, the legend, what is wrong."""

    text: str
    simulated: bool
    nodes: tuple[NodeRow, ...]
    legend: tuple[LegendEntry, ...]
    problems: tuple[str, ...]


def pool_view(status: Status, jobs: Mapping[str, Job]) -> PoolView:
    """Return the pool for a reader; ``jobs`` are those the reader may see, by id."""
    names = sorted({gpu.node for gpu in status.gpus})
    return PoolView(
        text=status.text,
        simulated=status.simulated,
        nodes=tuple(_node(name, status.gpus, jobs) for name in names),
        legend=tuple(
            LegendEntry(state, word, status.counts.get(state, 0))
            for state, word in GPU_WORDS.items()
        ),
        problems=tuple(status.health.problems),
    )


def gpu_places(gpus: Sequence[Gpu], uuids: Sequence[str] | None = None) -> str:
    """Return where GPUs are, in words: ``lab1: 0, 1, 3``; unknown ones by their UUID.

    >>> gpu_places([], ["GPU-0d1c"])
    'GPU-0d1c'
    """
    wanted = [gpu for gpu in gpus if uuids is None or gpu.uuid in uuids]
    by_node: dict[str, list[int]] = {}
    for gpu in wanted:
        by_node.setdefault(gpu.node, []).append(gpu.index)
    parts = [
        f"{node}: {', '.join(str(index) for index in sorted(indices))}"
        for node, indices in sorted(by_node.items())
    ]
    known = {gpu.uuid for gpu in wanted}
    parts += [uuid for uuid in uuids or () if uuid not in known]
    return "; ".join(parts)


def _node(name: str, gpus: Sequence[Gpu], jobs: Mapping[str, Job]) -> NodeRow:
    here = sorted((gpu for gpu in gpus if gpu.node == name), key=lambda gpu: gpu.index)
    models: dict[str, int] = {}
    for gpu in here:
        models[gpu.model] = models.get(gpu.model, 0) + 1
    busy = sum(gpu.state in _AT_WORK for gpu in here)
    kinds = ", ".join(f"{number} × {model}" for model, number in models.items())
    return NodeRow(
        name=name,
        summary=f"{kinds} · {busy} of {count(len(here), 'GPU')} in use",
        squares=tuple(_square(gpu, jobs) for gpu in here),
    )


_AT_WORK = frozenset(
    {GpuState.TRAIN_WITHIN_QUOTA, GpuState.TRAIN_OVER_QUOTA, GpuState.BUILD_HELD, GpuState.FOREIGN}
)


def _square(gpu: Gpu, jobs: Mapping[str, Job]) -> GpuSquare:
    job = jobs.get(gpu.job) if gpu.job else None
    return GpuSquare(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory="" if gpu.memory_mib is None else f"{gpu.memory_mib / 1024:.0f} GiB",
        state=gpu.state,
        word=GPU_WORDS[gpu.state],
        holder=_holder(gpu, job),
        job=job,
        note=gpu.note or "",
    )


def _holder(gpu: Gpu, job: Job | None) -> str:
    if gpu.user is None:
        return ""
    if job is not None:
        return f"{gpu.user}: {job.name}"
    if gpu.server is not None:
        return f"{gpu.user}: {server_name(gpu.server)}"
    return gpu.user


def server_name(server: str) -> str:
    """Return how a notebook server is called; the default one has no name of its own."""
    return f"server “{server}”" if server else "default server"
