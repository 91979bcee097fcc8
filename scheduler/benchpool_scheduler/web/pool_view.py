"""The pool as squares: state and holder of each GPU (screens: answer first)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from benchpool_scheduler.contract import Gpu, GpuState, Job, Status
from benchpool_scheduler.phrases import count, server_called
from benchpool_scheduler.web.words import GPU_WORDS, IDLE, Moment, StateWord, optional_moment


@dataclass(frozen=True, slots=True)
class GpuSquare:
    """One GPU. ``job`` is its job if the reader may see it; ``holder`` is text, else empty."""

    uuid: str
    index: int
    model: str
    memory: str
    state: GpuState
    word: StateWord
    holder: str
    job: Job | None
    note: str
    idle: Moment | None = None

    @property
    def label(self) -> str:
        """Return the text for screen readers and the label on hover."""
        idle = "" if self.idle is None else f"last seen {self.idle.relative}"
        facts = [f"GPU {self.index}", self.model, self.word.word, self.holder, idle, self.note]
        return " · ".join(fact for fact in facts if fact)


@dataclass(frozen=True, slots=True)
class NodeRow:
    """The GPUs of one node, ordered by index; ``rack`` is empty if unknown."""

    name: str
    summary: str
    squares: tuple[GpuSquare, ...]
    rack: str = ""


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """One state with the number of GPUs in it now."""

    state: GpuState
    word: StateWord
    gpus: int


@dataclass(frozen=True, slots=True)
class PoolView:
    """Section of the pool: sentence, nodes, legend, problems."""

    text: str
    simulated: bool
    nodes: tuple[NodeRow, ...]
    legend: tuple[LegendEntry, ...]
    problems: tuple[str, ...]


def pool_view(
    status: Status,
    jobs: Mapping[str, Job],
    now: datetime,
    racks: Mapping[str, str] | None = None,
) -> PoolView:
    """Return the pool for a reader.

    Args:
        jobs: The jobs that the reader may see, by ID.
        racks: Location of nodes, by name; nodes of one rack are grouped.
    """
    at = racks or {}
    names = sorted({gpu.node for gpu in status.gpus}, key=lambda name: (at.get(name, ""), name))
    idle = sum(gpu.idle_since is not None for gpu in status.gpus)
    return PoolView(
        text=status.text,
        simulated=status.simulated,
        nodes=tuple(_node(name, at.get(name, ""), status.gpus, jobs, now) for name in names),
        legend=tuple(_legend(status.counts, idle)),
        problems=tuple(status.health.problems),
    )


def gpu_places(gpus: Sequence[Gpu], uuids: Sequence[str] | None = None) -> str:
    """Return the places of GPUs in words: ``lab1: 0, 1, 3``; unknown GPUs by their UUID.

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


def _legend(counts: Mapping[GpuState, int], idle: int) -> Iterator[LegendEntry]:
    for state, word in GPU_WORDS.items():
        gpus = counts.get(state, 0)
        yield LegendEntry(state, word, gpus - idle if state is GpuState.BUILD_HELD else gpus)
        if state is GpuState.BUILD_HELD:
            yield LegendEntry(state, IDLE, idle)


def _node(
    name: str, rack: str, gpus: Sequence[Gpu], jobs: Mapping[str, Job], now: datetime
) -> NodeRow:
    here = sorted((gpu for gpu in gpus if gpu.node == name), key=lambda gpu: gpu.index)
    models: dict[str, int] = {}
    for gpu in here:
        models[gpu.model] = models.get(gpu.model, 0) + 1
    busy = sum(gpu.state in _AT_WORK for gpu in here)
    kinds = ", ".join(f"{number} × {model}" for model, number in models.items())
    return NodeRow(
        name=name,
        summary=f"{kinds} · {busy} of {count(len(here), 'GPU')} held",
        squares=tuple(_square(gpu, jobs, now) for gpu in here),
        rack=rack,
    )


_AT_WORK = frozenset(
    {GpuState.TRAIN_WITHIN_QUOTA, GpuState.TRAIN_OVER_QUOTA, GpuState.BUILD_HELD, GpuState.FOREIGN}
)


def _square(gpu: Gpu, jobs: Mapping[str, Job], now: datetime) -> GpuSquare:
    job = jobs.get(gpu.job) if gpu.job else None
    return GpuSquare(
        uuid=gpu.uuid,
        index=gpu.index,
        model=gpu.model,
        memory="" if gpu.memory_mib is None else f"{gpu.memory_mib / 1024:.0f} GiB",
        state=gpu.state,
        word=GPU_WORDS[gpu.state] if gpu.idle_since is None else IDLE,
        holder=_holder(gpu, job),
        job=job,
        note=gpu.note or "",
        idle=optional_moment(gpu.idle_since, now),
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
    """Return the display name of a notebook server; the default one has no name of its own."""
    return server_called(server, "")
