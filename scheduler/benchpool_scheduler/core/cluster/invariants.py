"""Invariants of every plan, recomputed from the snapshot and the plan alone (R1, R8, R10).

No data of the pass that made the plan is used, so that a fault in such data cannot hide itself.
Only changes made by the plan are checked. A violation that existed before is not reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from benchpool_scheduler.core.jobs.amounts import UNITS, WHOLE_GPU, Amounts, exact, first_over
from benchpool_scheduler.core.jobs.tree import Tree
from benchpool_scheduler.core.model import (
    Activity,
    GpuId,
    JobFacts,
    JobId,
    NodeName,
    Plan,
    Snapshot,
    Start,
    Worker,
)
from benchpool_scheduler.phrases import count


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the pool would break after a plan.

    Attributes:
        rule: Number of the rule, e.g. ``R1``.
        text: Description of the violation, with names and numbers.
        jobs: Jobs whose commands are affected.
    """

    rule: str
    text: str
    jobs: frozenset[JobId]

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


Placed = tuple[JobFacts, Worker]
"""A worker and its job."""


def violations(snapshot: Snapshot, plan: Plan, tree: Tree | None = None) -> tuple[Violation, ...]:
    """Return the violations of a plan. A plan without any can be applied.

    Args:
        tree: The snapshot's projects, if the tree exists already.

    >>> from benchpool_scheduler.core.model import Node, Plan, Project, ProjectName
    >>> job, gpu = JobFacts(JobId("j"), ProjectName("p")), GpuId("g")
    >>> pool = Snapshot(
    ...     nodes=(Node(NodeName("n"), (gpu,)),),
    ...     projects=(Project(ProjectName("p")),),
    ...     jobs=(job, JobFacts(JobId("k"), ProjectName("p"))),
    ... )
    >>> worker = Worker(NodeName("n"), (gpu,))
    >>> twice = Plan((Start(JobId("j"), (worker,)), Start(JobId("k"), (worker,))), {}, {})
    >>> [str(violation) for violation in violations(pool, twice)]
    ['R1: GPU g on node n would be held by j and k']
    """
    if not plan.commands:
        return ()
    after = _Applied.of(snapshot, plan, tree)
    return (
        *_shared_gpus(after),
        *_missing_gpus(after),
        *_early_starts(after),
        *_broken_gangs(after),
        *_full_nodes(after),
        *_passed_bounds(after),
    )


@dataclass(frozen=True, slots=True)
class _Applied:
    """A pool whose plan has taken effect.

    Attributes:
        jobs: Jobs that hold workers or are named in the plan, as they were before it.
        held: Workers of each job, with promised ones and without leaving ones.
        given: Workers that the plan gives, by job.
        taken: Workers that the plan takes, by job.
        nodes: Nodes on which the plan gives workers.
    """

    snapshot: Snapshot
    plan: Plan
    tree: Tree
    jobs: Mapping[JobId, JobFacts]
    held: Mapping[JobId, tuple[Worker, ...]]
    given: Mapping[JobId, tuple[Worker, ...]]
    taken: Mapping[JobId, tuple[Worker, ...]]
    nodes: frozenset[NodeName]

    @classmethod
    def of(cls, snapshot: Snapshot, plan: Plan, tree: Tree | None) -> _Applied:
        given: dict[JobId, tuple[Worker, ...]] = {}
        taken: dict[JobId, tuple[Worker, ...]] = {}
        for command in plan.commands:
            changed = given if isinstance(command, Start) else taken
            changed[command.job] = (*changed.get(command.job, ()), *command.workers)
        held: dict[JobId, tuple[Worker, ...]] = {}
        jobs = {it.id: it for it in snapshot.jobs if it.held or it.id in given or it.id in taken}
        for job in jobs.values():
            stay = () if job.activity is Activity.TERMINATING else job.held
            if job.id in taken:
                stay = tuple(worker for worker in stay if worker not in taken[job.id])
            if workers := (*stay, *given.get(job.id, ())):
                held[job.id] = workers
        tree = tree or Tree(snapshot.projects)
        nodes = frozenset(worker.node for workers in given.values() for worker in workers)
        return cls(snapshot, plan, tree, jobs, held, given, taken, nodes)

    def starts(self) -> Iterator[Start]:
        """Yield the plan's starts, in their order."""
        return (command for command in self.plan.commands if isinstance(command, Start))

    def given_on(self, node: NodeName) -> Iterator[JobId]:
        """Yield the jobs that the plan gives workers on a node."""
        return (job for job, given in self.given.items() if any(w.node == node for w in given))

    def placed_there(self) -> Iterator[Placed]:
        """Yield every worker that is held after the plan on a node where the plan gives workers."""
        return ((job, worker) for job, worker in self.placed() if worker.node in self.nodes)

    def placed_there_before(self) -> Iterator[Placed]:
        """Yield every worker that was held before the plan where the plan gives workers."""
        return ((job, worker) for job, worker in self.placed_before() if worker.node in self.nodes)

    def placed(self) -> Iterator[Placed]:
        """Yield every worker that is held after the plan."""
        for name, workers in self.held.items():
            for worker in workers:
                yield self.jobs[name], worker

    def placed_before(self) -> Iterator[Placed]:
        """Yield every worker that was held before the plan, with those of leaving jobs."""
        for job in self.jobs.values():
            for worker in job.held:
                yield job, worker


# --------------------------------------------------------------------------- R1


def _shared_gpus(after: _Applied) -> Iterator[Violation]:
    """Find GPUs that the plan gives and that more than one worker would hold."""
    given = {(w.node, gpu) for workers in after.given.values() for w in workers for gpu in w.gpus}
    for (node, gpu), found in _holders(after.placed_there()).items():
        if len(found) > 1 and (node, gpu) in given and not _fit_in_one(found):
            names = " and ".join(job.id for job, _ in found)
            text = f"GPU {gpu} on node {node} would be held by {names}"
            yield Violation("R1", text, frozenset(job.id for job, _ in found))


def _holders(placed: Iterable[Placed]) -> Mapping[tuple[NodeName, GpuId], list[Placed]]:
    found: dict[tuple[NodeName, GpuId], list[Placed]] = defaultdict(list)
    for job, worker in placed:
        for gpu in worker.gpus:
            found[worker.node, gpu].append((job, worker))
    return found


def _fit_in_one(holders: Collection[Placed]) -> bool:
    """Return whether the workers are parts of one project that add up to at most one GPU."""
    parts = [WHOLE_GPU if worker.part is None else worker.part for _, worker in holders]
    return sum(parts) <= WHOLE_GPU and len({job.project for job, _ in holders}) == 1


def _missing_gpus(after: _Applied) -> Iterator[Violation]:
    """Find GPUs that the plan gives although they do not exist or their node is not ready."""
    nodes = {node.name: node for node in after.snapshot.nodes}
    for name, workers in after.given.items():
        for worker in workers:
            node = nodes.get(worker.node)
            if node is None or not node.ready or not set(worker.gpus) <= set(node.gpus):
                gpus = ", ".join(worker.gpus) or "no GPU"
                text = f"{name} would get {gpus} of node {worker.node}"
                yield Violation("R1", text, frozenset((name,)))


def _early_starts(after: _Applied) -> Iterator[Violation]:
    """Find starts on GPUs held by a job whose end the start does not wait for."""
    holders = _holders(after.placed_there_before())
    for start in after.starts():
        for worker in start.workers:
            placed = (one for gpu in worker.gpus for one in holders.get((worker.node, gpu), ()))
            for holder, held in placed:
                apart = worker.part is None or held.part is None
                if apart and holder.id not in start.after:
                    text = f"{start.job} would start on {worker.node} before {holder.id} leaves"
                    yield Violation("R1", text, frozenset((start.job,)))


def _full_nodes(after: _Applied) -> Iterator[Violation]:
    """Find nodes on which the plan gives more CPUs or memory than they have."""
    used = [node for node in after.snapshot.nodes if node.name in after.nodes]
    if all(node.cpus is None and node.memory_gib is None for node in used):
        return
    now, before = _by_node(after.placed_there()), _by_node(after.placed_there_before())
    for node in used:
        cpus, memory = exact(node.cpus or 0, node.memory_gib or 0)
        bounds = (
            None,
            None if node.cpus is None else max(cpus, before[node.name].cpus),
            None if node.memory_gib is None else max(memory, before[node.name].memory),
        )
        if (over := first_over(now[node.name], bounds)) is not None:
            held = _with_unit(now[node.name], over)
            text = f"{held} of node {node.name} would be held, more than it has"
            yield Violation("R1", text, frozenset(after.given_on(node.name)))


def _by_node(placed: Iterable[Placed]) -> Mapping[NodeName, Amounts]:
    found: dict[NodeName, Amounts] = defaultdict(Amounts)
    for job, worker in placed:
        found[worker.node] += _request(job)
    return found


def _with_unit(amounts: Amounts, resource: int) -> str:
    """Return an amount of one resource with its unit, e.g. ``2.5 CPUs``."""
    name = ("GPUs", "CPUs", "GiB of memory")[resource]
    return f"{amounts[resource] / UNITS[resource]:g} {name}"


def _request(job: JobFacts) -> Amounts:
    """Return the amounts that one worker of the job takes."""
    gpus = job.spec.gpus * WHOLE_GPU if job.fraction is None else job.fraction
    return Amounts(gpus, *exact(job.spec.cpus, job.spec.memory_gib))


# --------------------------------------------------------------------------- R10


def _broken_gangs(after: _Applied) -> Iterator[Violation]:
    """Find gangs that the plan leaves below their minimum or above their maximum."""
    for name in sorted({*after.given, *after.taken}):
        job, number = after.jobs[name], len(after.held.get(name, ()))
        least, most, before = job.spec.least_workers, job.spec.workers, len(job.held)
        if 0 < number < min(least, before or least):
            text = f"{name} would have {_workers(number)}, its minimum is {least}"
            yield Violation("R10", text, frozenset((name,)))
        elif number > max(most, before):
            text = f"{name} would have {_workers(number)}, its maximum is {most}"
            yield Violation("R10", text, frozenset((name,)))
    begun: set[JobId] = set()
    stopped = {
        name for name, lost in after.taken.items() if len(lost) == len(after.jobs[name].held)
    }
    for start in after.starts():
        if start.job in stopped and start.job not in start.after:
            text = f"{start.job} would start workers before its old ones have left"
            yield Violation("R10", text, frozenset((start.job,)))
        job, first = after.jobs[start.job], start.job not in begun
        begun.add(start.job)
        if first and not job.held and len(start.workers) < job.spec.least_workers:
            text = f"{start.job} would start with {_workers(len(start.workers))}"
            yield Violation("R10", text, frozenset((start.job,)))


def _workers(number: int) -> str:
    return count(number, "worker")


# --------------------------------------------------------------------------- R8


def _passed_bounds(after: _Applied) -> Iterator[Violation]:
    """Find limits, and quotas for non-preemptible jobs, that the plan exceeds."""
    tree = after.tree
    paths = {name: tree.of(after.jobs[name].project).path for name in after.given}
    limited = any(tree.branches[path[-1]].limited for path in paths.values())
    lasting = any(not after.jobs[name].spec.preemptible for name in after.given)
    for firm in [False] * limited + [True] * lasting:
        now = _by_project(tree, after.placed(), firm=firm)
        before = _by_project(tree, after.placed_before(), firm=firm)
        for index in sorted(set().union(*paths.values())):
            branch = tree.branches[index]
            over = first_over(now[index], branch.firm_quota if firm else branch.limit)
            if over is not None and now[index][over] > before[index][over]:
                what = "its quota, with work that may not be paused" if firm else "its limit"
                text = f"{branch.name} would hold {_with_unit(now[index], over)}, above {what}"
                jobs = frozenset(name for name, path in paths.items() if index in path)
                yield Violation("R8", text, jobs)


def _by_project(tree: Tree, placed: Iterable[Placed], *, firm: bool) -> Mapping[int, Amounts]:
    """Return what each project holds with its descendants.

    Args:
        firm: Count only non-preemptible jobs.
    """
    found: dict[int, Amounts] = defaultdict(Amounts)
    for job, _ in placed:
        if not firm or not job.spec.preemptible:
            for index in tree.of(job.project).path:
                found[index] += _request(job)
    return found
