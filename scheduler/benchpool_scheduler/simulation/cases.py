"""Read scheduling cases (formats, section 1) into snapshots of the core."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.jobs.amounts import WHOLE_GPU
from benchpool_scheduler.core.jobs.job_info import job_info_of
from benchpool_scheduler.core.jobs.tree import Tree, with_sums
from benchpool_scheduler.core.model import (
    Activity,
    Bound,
    GpuId,
    JobFacts,
    JobId,
    Node,
    NodeName,
    Policy,
    Project,
    ProjectName,
    Snapshot,
    UserUse,
    Worker,
)
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.simulation import documents
from benchpool_scheduler.simulation.documents import Mapped, whole_seconds

ABILITIES = ("fractions", "elastic", "topology", "types", "consolidation")
"""Optional abilities that a case may require."""

CASE_KEYS = (
    *("version", "case", "title", "requires", "policy", "topology", "nodes", "projects", "users"),
    *("jobs", "rounds", "stable", "expect"),
)
NODE_KEYS = ("name", "gpus", "pool", "gpu_model", "cpus", "memory_gib", "labels", "ready")
PROJECT_KEYS = (
    *("name", "parent", "quota", "limit", "weight", "priority", "cpus", "memory_gib"),
    *("min_runtime_s", "used_gpu_s"),
)
BOUND_KEYS = ("quota", "limit", "weight")
USER_KEYS = ("name", "project", "used_gpu_s")
JOB_KEYS = (
    *("name", "project", "gpus", "workers", "min_workers", "priority", "preemptible", "state"),
    *("nodes", "running_workers", "cpus", "memory_gib", "topology", "gpu_models", "user"),
    *("time_limit_s", "ran_s", "since_checkpoint_s", "checkpoints", "waits_s"),
)
TOPOLOGY_KEYS = ("required", "preferred")
EXPECT_KEYS = ("state", "workers", "nodes", "domain")
POLICY_KEYS = tuple(setting.name for setting in fields(Policy))
TRAIN_POOL = "train"


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected result of one job; fields that are None are not compared."""

    state: str | None
    workers: int | None
    nodes: tuple[str, ...] | None
    domain: str | None


@dataclass(slots=True)
class _Free:
    """Free GPUs of a node while its running workers are placed in the order of the file.

    Attributes:
        whole: Free whole GPUs. ``parts``: partly used GPUs by project and thousandths left.
    """

    whole: list[GpuId]
    parts: dict[GpuId, tuple[ProjectName, int]] = field(default_factory=dict)

    def take(self, gpus: int) -> tuple[GpuId, ...] | None:
        """Return the next GPUs, or None when too few are left."""
        if len(self.whole) < gpus:
            return None
        taken, self.whole = self.whole[:gpus], self.whole[gpus:]
        return tuple(taken)

    def take_part(self, project: ProjectName, part: int) -> tuple[GpuId, ...] | None:
        """Return a GPU of the project with enough thousandths left, else the next free GPU."""
        for gpu, (owner, left) in self.parts.items():
            if owner == project and left >= part:
                self.parts[gpu] = owner, left - part
                return (gpu,)
        if (taken := self.take(1)) is not None:
            self.parts[taken[0]] = project, WHOLE_GPU - part
        return taken


@dataclass(frozen=True, slots=True)
class Case:
    """One case; ``snapshot`` is None when the case needs an ability that this build lacks.

    Attributes:
        missing: The first required ability that this build lacks.
        rounds: Maximum number of passes until the expected result. ``stable``: number of further
            passes in which nothing may change.
        preempted: Exact set of jobs that must be stopped or lose workers; None: not compared.
    """

    name: str
    source: str
    missing: str | None
    snapshot: Snapshot | None
    rounds: int = 2
    stable: int = 5
    expect: Mapping[str, Expected] | None = None
    preempted: frozenset[str] | None = None
    moved: frozenset[str] | None = None


def load(path: Path, abilities: Sequence[str]) -> list[Case]:
    """Return the cases of a file.

    Raises:
        InvalidInput: The file is invalid; the message names key, file and the nearest known key.
    """
    cases = [_case(document, path, abilities) for document in documents.load(path)]
    names = [case.name for case in cases]
    for name in names:
        if names.count(name) > 1:
            raise InvalidInput(f"case {name} is given twice in {path}; give each its own name")
    return cases


def _case(document: object, path: Path, abilities: Sequence[str]) -> Case:
    case = Mapped.of(document, str(path), CASE_KEYS)
    name = case.text("case")
    case = Mapped(case.values, f"{path}, case {name}")
    if case.values.get("version") != 1:
        raise case.wrong("version", "1")
    requires = case.texts("requires")
    for ability in requires:
        if ability not in ABILITIES:
            raise case.wrong("requires", f"a list of {', '.join(ABILITIES)}")
    missing = next((ability for ability in requires if ability not in abilities), None)
    if missing is not None:
        return Case(name, str(path), missing, None)
    snapshot = _snapshot(case)
    _check(snapshot, case.where)
    expect = case.values.get("expect", {})
    if not isinstance(expect, Mapping):
        raise case.wrong("expect", "a mapping of jobs to their expected results")
    return Case(
        name=name,
        source=str(path),
        missing=None,
        snapshot=snapshot,
        rounds=case.whole("rounds", 2, least=1),
        stable=case.whole("stable", 5),
        expect=_expectations(expect, snapshot, case.where),
        preempted=_named("preempted", expect, snapshot, case.where),
        moved=_named("moved", expect, snapshot, case.where),
    )


def _snapshot(case: Mapped) -> Snapshot:
    where = case.where
    nodes = [_node(Mapped.of(n, f"{where}, a node", NODE_KEYS)) for n in case.items("nodes")]
    known = {node.name: node for node, _ in nodes}
    if len(known) < len(nodes):
        raise InvalidInput(f"two nodes in {where} have one name; give each its own")
    free = {node.name: _Free(list(node.gpus)) for node, _ in nodes}
    jobs = [_job(job, free, where) for job in case.items("jobs")]
    if len({job.id for job in jobs}) < len(jobs):
        raise InvalidInput(f"two jobs in {where} have one name; give each its own")
    projects = [_project(project, where) for project in case.items("projects")]
    shared = any(job.fraction is not None for job in jobs)
    return Snapshot(
        nodes=tuple(replace(node, shared=shared) for node, pool in nodes if pool == TRAIN_POOL),
        projects=with_sums(projects, _without_quota(case.items("projects"))),
        jobs=tuple(jobs),
        policy=policy_of(case.values.get("policy", {}), f"{where}, policy"),
        users=tuple(_user(user, where) for user in case.items("users")),
        topology=tuple(case.texts("topology")),
    )


def _check(snapshot: Snapshot, where: str) -> None:
    """Reject what the core would reject, and name file and case."""
    try:
        tree = Tree(snapshot.projects)
        for age, job in enumerate(snapshot.jobs):
            job_info_of(job, age, tree)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error.message}") from error


def policy_of(value: object, where: str) -> Policy:
    """Return the policy described by a mapping of settings."""
    settings = Mapped.of(value, where, POLICY_KEYS)
    policy = Policy()
    numbers = {name: settings.number(name, getattr(policy, name)) for name in settings.values}
    for name in ("preemptions_per_hour", "preemptions_per_day"):
        if name in numbers:
            numbers[name] = settings.whole(name, getattr(policy, name))
    return Policy(**numbers)  # type: ignore[arg-type]


def _node(node: Mapped) -> tuple[Node, str]:
    name = node.text("name")
    labels = node.values.get("labels", {})
    if not isinstance(labels, Mapping):
        raise node.wrong("labels", "a mapping of names to values")
    gpus = tuple(GpuId(f"{name}/{index}") for index in range(node.whole("gpus", 0)))
    model = node.values.get("gpu_model")
    return Node(
        name=NodeName(name),
        gpus=gpus,
        gpu_model=None if model is None else node.text("gpu_model"),
        cpus=node.maybe("cpus"),
        memory_gib=node.maybe("memory_gib"),
        labels={str(key): str(value) for key, value in labels.items()},
        ready=node.flag("ready", True),
    ), node.text("pool", TRAIN_POOL)


def _project(value: object, where: str) -> Project:
    project = Mapped.of(value, f"{where}, a project", PROJECT_KEYS)
    name = project.text("name")
    project = Mapped(project.values, f"{where}, project {name}")
    parent = project.values.get("parent")
    return Project(
        name=ProjectName(name),
        parent=None if parent is None else ProjectName(project.text("parent")),
        quota=_quota(project, whole=True),
        limit=project.maybe_whole("limit"),
        weight=project.maybe("weight"),
        priority=_any_whole(project, "priority"),
        cpus=_bound(project, "cpus"),
        memory_gib=_bound(project, "memory_gib"),
        min_runtime_s=project.maybe("min_runtime_s"),
        used_gpu_s=project.number("used_gpu_s", 0.0),
    )


def _without_quota(values: Iterable[object]) -> set[ProjectName]:
    """Return the names of the projects without a written quota."""
    return {
        ProjectName(str(value["name"]))
        for value in values
        if isinstance(value, Mapping) and value.get("quota") is None
    }


def _any_whole(mapped: Mapped, key: str, default: int = 0) -> int:
    value = mapped.values.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise mapped.wrong(key, "a whole number")
    return value


def _quota(mapped: Mapped, *, whole: bool) -> int | None:
    if mapped.values.get("quota") == "unlimited":
        return None
    if whole:
        return mapped.whole("quota", 0)
    return mapped.maybe("quota")  # type: ignore[return-value]


def _bound(project: Mapped, key: str) -> Bound:
    if key not in project.values:
        return Bound()
    bound = Mapped.of(project.values[key], f"{project.where}, {key}", BOUND_KEYS)
    return Bound(_quota(bound, whole=False), bound.maybe("limit"), bound.maybe("weight"))


def _user(value: object, where: str) -> UserUse:
    user = Mapped.of(value, f"{where}, a user", USER_KEYS)
    project = ProjectName(user.text("project"))
    return UserUse(user.text("name"), project, user.number("used_gpu_s", 0.0))


def _job(value: object, free: dict[NodeName, _Free], where: str) -> JobFacts:
    job = Mapped.of(value, f"{where}, a job", JOB_KEYS)
    name = job.text("name")
    job = Mapped(job.values, f"{where}, job {name}")
    workers = job.whole("workers", 1, least=1)
    least = job.whole("min_workers", workers, least=1)
    if least > workers:
        raise job.wrong("min_workers", f"at most workers, {workers}")
    activity = Activity(job.choice("state", [a.value for a in Activity], "queued"))
    levels = Mapped.of(job.values.get("topology", {}), f"{job.where}, topology", TOPOLOGY_KEYS)
    gpus, fraction = _gpus(job)
    project = ProjectName(job.text("project"))
    return JobFacts(
        id=JobId(name),
        project=project,
        spec=JobSpec(
            gpus=gpus,
            workers=workers,
            min_workers=least,
            priority=_any_whole(job, "priority", 50),
            preemptible=job.flag("preemptible", True),
            cpus=job.number("cpus", 0.0),
            memory_gib=job.number("memory_gib", 0.0),
            gpu_models=tuple(job.texts("gpu_models")),
            required_level=None
            if levels.values.get("required") is None
            else levels.text("required"),
            preferred_level=None
            if levels.values.get("preferred") is None
            else levels.text("preferred"),
            time_limit_s=whole_seconds(job.maybe("time_limit_s")),
        ),
        user=job.text("user", project),
        activity=activity,
        held=_held(job, activity, (gpus, fraction), least, free),
        fraction=fraction,
        ran_s=job.number("ran_s", 0.0),
        since_checkpoint_s=job.maybe("since_checkpoint_s"),
        checkpoints=job.flag("checkpoints", True),
        waits_s=job.number("waits_s", 0.0),
    )


def _gpus(job: Mapped) -> tuple[int, int | None]:
    """Return the GPUs per worker, and the thousandths of its GPU if the job requests a fraction."""
    gpus = job.values.get("gpus", 1)
    if not isinstance(gpus, float):
        return job.whole("gpus", 1), None
    fraction = round(gpus * WHOLE_GPU)
    if not 0 < fraction < WHOLE_GPU or abs(gpus * WHOLE_GPU - fraction) > 1e-6:
        raise job.wrong(
            "gpus", "a whole number, or a share of one GPU in thousandths, such as 0.125"
        )
    return 1, fraction


def _held(
    job: Mapped,
    activity: Activity,
    asked: tuple[int, int | None],
    least: int,
    free: dict[NodeName, _Free],
) -> tuple[Worker, ...]:
    """Return the workers of a job that holds GPUs, taking the GPUs from ``free`` in order."""
    names = [NodeName(name) for name in job.texts("nodes")]
    if activity is Activity.QUEUED:
        if names or job.values.get("running_workers"):
            raise job.wrong("nodes", "omitted, because the job is queued")
        return ()
    if len(names) != job.whole("running_workers", len(names)):
        raise job.wrong("nodes", "one node for each of running_workers")
    if activity is Activity.RUNNING and len(names) < least:
        raise job.wrong("nodes", f"one node for each worker, at least {least}")
    workers: list[Worker] = []
    for name in names:
        if name not in free:
            raise job.wrong("nodes", "names of declared nodes")
        node, (gpus, part) = free[name], asked
        project = ProjectName(job.text("project"))
        taken = node.take(gpus) if part is None else node.take_part(project, part)
        if taken is None:
            raise job.wrong("nodes", f"nodes with room; {name} has {len(node.whole)} GPUs left")
        workers.append(Worker(name, taken, part))
    return tuple(workers)


def _expectations(
    expect: Mapping[str, object], snapshot: Snapshot, where: str
) -> dict[str, Expected]:
    jobs = [job.id for job in snapshot.jobs]
    found: dict[str, Expected] = {}
    for name, value in expect.items():
        if name in ("preempted", "moved") and name not in jobs:
            continue
        Mapped.of({str(name): None}, f"{where}, expect", [*jobs, "preempted", "moved"])
        entry = Mapped.of(value, f"{where}, expect {name}", EXPECT_KEYS)
        states = [a.value for a in Activity]
        found[str(name)] = Expected(
            state=entry.choice("state", states, "") or None,
            workers=entry.maybe_whole("workers"),
            nodes=tuple(sorted(entry.texts("nodes"))) if "nodes" in entry.values else None,
            domain=None if "domain" not in entry.values else entry.text("domain"),
        )
    return found


def _named(
    key: str, expect: Mapping[str, object], snapshot: Snapshot, where: str
) -> frozenset[str] | None:
    if key not in expect or key in [job.id for job in snapshot.jobs]:
        return None
    names = Mapped.of(dict(expect), f"{where}, expect", [str(name) for name in expect]).texts(key)
    known = [job.id for job in snapshot.jobs]
    for name in names:
        Mapped.of({name: None}, f"{where}, expect {key}", known)
    return frozenset(names)
