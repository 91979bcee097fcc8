"""The pools of ``benchpool bench time`` (formats, section 3), built in memory.

Nodes have 8 GPUs. A shape defines its default size, its expected result and, for ``event``, the
running job that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Project,
    ProjectName,
    Snapshot,
    Worker,
)
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation.shapes.crowded import crowded, first_to_end
from benchpool_scheduler.simulation.shapes.tallies import Expectation, exactly, something_starts

GPUS = 8
"""GPUs of a node."""

LEVELS = (("hall", 512), ("zone", 128), ("block", 16), ("rack", 2))
"""Nodes in one domain of each level: 4 zones of 8 blocks of 8 racks of 2 nodes, repeated."""

GANG = 512
"""Number of workers of the gang in the shape ``gang``."""


@dataclass(frozen=True, slots=True)
class Built:
    """A shape of one size.

    Attributes:
        ends: The job whose end is the event; None if the whole pass is timed.
    """

    snapshot: Snapshot
    expected: Expectation
    ends: JobId | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """Definition of a shape.

    Attributes:
        summary: Its description, in half a sentence.
        nodes: Its default size. ``least``: its smallest sensible size.
        make: Builds it with the given number of nodes.
    """

    summary: str
    nodes: int
    least: int
    make: Callable[[int], Built]

    def size(self, nodes: int | None) -> int:
        """Return the requested or default number of nodes. Errors: InvalidInput if impossible."""
        if nodes is None:
            return self.nodes
        if nodes < self.least:
            raise InvalidInput(
                f"--nodes is {nodes}; this shape needs at least {self.least}.",
                field="nodes",
                numbers={"nodes": nodes, "limit": self.least},
            )
        return nodes

    def build(self, nodes: int | None = None) -> Built:
        """Build the shape with this number of nodes. Errors: InvalidInput if impossible."""
        return self.make(self.size(nodes))


def nodes_of(count: int, labels: Callable[[int], Mapping[str, str]] | None = None) -> list[Node]:
    """Return nodes ``n0``, ``n1``, ... with GPUs ``n0/0``, ``n0/1``, ..."""
    return [
        Node(
            NodeName(f"n{number}"),
            tuple(GpuId(f"n{number}/{gpu}") for gpu in range(GPUS)),
            labels={} if labels is None else labels(number),
        )
        for number in range(count)
    ]


def _fill(count: int) -> Built:
    projects = tuple(Project(ProjectName(f"p{n}"), quota=8 * count // 20) for n in range(20))
    jobs = [JobFacts(JobId(f"j{n}"), projects[n % 20].name) for n in range(8 * count)]
    expected = exactly(started=8 * count, preempted=0, waiting=0)
    return Built(Snapshot(tuple(nodes_of(count)), projects, tuple(jobs)), expected)


def _lent(nodes: Sequence[Node], ran_s: Callable[[int], float]) -> list[JobFacts]:
    """Return one running job for each GPU, of project ``guest``, oldest node first."""
    gpus = [(node.name, gpu) for node in nodes for gpu in node.gpus]
    return [
        JobFacts(
            JobId(f"guest-{gpu}"),
            ProjectName("guest"),
            activity=Activity.RUNNING,
            held=(Worker(node, (gpu,)),),
            ran_s=ran_s(number),
        )
        for number, (node, gpu) in enumerate(gpus)
    ]


def _scattered(number: int) -> float:
    """Return a run time without relation to the node, so that whole nodes must be freed."""
    return 600.0 + number * 7919 % 5003


def _by_node(number: int) -> float:
    """Return a run time by node, so that cheap victims share nodes and only the quota matters."""
    return 600.0 + number


def _reclaim(
    count: int,
    guests: Project,
    jobs: Sequence[JobFacts],
    expected: Expectation,
    ran_s: Callable[[int], float] = _scattered,
) -> Built:
    """Return a pool full of guests' jobs, with an owner who claims the whole quota."""
    nodes = nodes_of(count)
    owner = Project(ProjectName("owner"), quota=8 * count)
    lent = _lent(nodes, ran_s)
    return Built(Snapshot(tuple(nodes), (owner, guests), (*lent, *jobs)), expected)


def _half(count: int) -> JobFacts:
    return JobFacts(
        JobId("gang"),
        ProjectName("owner"),
        spec=JobSpec(gpus=GPUS, workers=count // 2, min_workers=count // 2),
    )


def _drain(count: int) -> Built:
    guests = Project(ProjectName("guest"), quota=0, weight=0)
    expected = exactly(started=1, preempted=count // 2 * GPUS, waiting=0)
    return _reclaim(count, guests, [_half(count)], expected)


def _blocked(count: int) -> Built:
    """Return a pool whose gang needs one GPU that is within the guests' quota (R16, R17)."""
    guests = Project(ProjectName("guest"), quota=(count - count // 2) * GPUS + 1, weight=0)
    expected = exactly(started=0, preempted=0, waiting=1)
    return _reclaim(count, guests, [_half(count)], expected, _by_node)


def _swap(count: int) -> Built:
    guests = Project(ProjectName("guest"), quota=0, weight=0)
    jobs = [JobFacts(JobId(f"own-{n}"), ProjectName("owner")) for n in range(8 * count)]
    return _reclaim(count, guests, jobs, exactly(started=8 * count, preempted=8 * count, waiting=0))


def _gang(count: int) -> Built:
    """Return a gang that fills the first hall, with the GPUs per worker that this takes."""
    hall = min(count, GANG) * GPUS
    each = max(1, hall // GANG)
    workers = min(GANG, hall)
    job = JobFacts(
        JobId("gang"),
        ProjectName("owner"),
        spec=JobSpec(gpus=each, workers=workers, min_workers=workers, preferred_level="hall"),
    )
    nodes = nodes_of(count, lambda n: {level: f"{level}{n // size}" for level, size in LEVELS})
    snapshot = Snapshot(
        tuple(nodes),
        (Project(ProjectName("owner"), quota=8 * count),),
        (job,),
        topology=tuple(level for level, _ in LEVELS),
    )
    return Built(snapshot, exactly(started=1, preempted=0, waiting=0))


def _cycle(count: int) -> Built:
    return Built(crowded(count), exactly(started=0, preempted=0, waiting=10 * count))


def _event(count: int) -> Built:
    snapshot = crowded(count)
    return Built(snapshot, something_starts(10 * count), ends=first_to_end(snapshot))


SHAPES: Mapping[str, Shape] = {
    "fill": Shape("empty nodes, 8N one-GPU jobs in 20 projects: all start", 500, 3, _fill),
    "cycle": Shape("4N run, 10N wait: one pass with every reason", 1000, 20, _cycle),
    "event": Shape("as cycle, after one job ends: the next pass", 1000, 20, _event),
    "drain": Shape("a gang reclaims half of the lent GPUs", 1000, 2, _drain),
    "swap": Shape("8N jobs are preempted for 8N others in one pass", 500, 1, _swap),
    "blocked": Shape("as drain, but one GPU short: no job is preempted", 1000, 2, _blocked),
    "gang": Shape("512 workers, a topology of four levels", 1000, 1, _gang),
}
"""Every shape of the decision core, by name."""
