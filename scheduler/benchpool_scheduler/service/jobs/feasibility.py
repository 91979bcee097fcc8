"""Refuses what could never run (R22): the core says that it cannot; here is said how to mend it.

Looks at what there is, whoever holds it now.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchpool_scheduler.configuration import Configuration
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL
from benchpool_scheduler.core.explain.never import EmptyPool
from benchpool_scheduler.core.model import ReasonCode
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.benches.bench_reserve import capacity
from benchpool_scheduler.service.cluster_state.empty_pool import empty_pool
from benchpool_scheduler.service.cluster_state.snapshots import candidate
from benchpool_scheduler.service.jobs.submission_checks import check_size
from benchpool_scheduler.service.lifecycle.job_reasons import sentence
from benchpool_scheduler.service.observed.inventory import UNKNOWN, Inventory, node_of
from benchpool_scheduler.service.observed.observations import Observations
from benchpool_scheduler.service.observed.observed import Observed
from benchpool_scheduler.store.records import JobRecord

REFUSED = frozenset({ReasonCode.PROJECT_LIMIT, ReasonCode.NON_PREEMPTIBLE_OVER_QUOTA})
"""What a rule forbids; all else the machines cannot do."""
LEVEL_FIELDS = ("required_level", "preferred_level")


def check_levels(submission: JobSubmission, configuration: Configuration) -> None:
    """Refuse levels that the machine room does not have. Errors: InvalidInput."""
    known = (*(level.name for level in configuration.topology), NODE_LEVEL)
    for field in LEVEL_FIELDS:
        name = getattr(submission, field)
        if name is not None and name not in known:
            raise InvalidInput(
                f"The machine room has no level {name!r}{nearest(name, known)}",
                code="no-such-level",
                field=field,
            )


class Feasibility:
    """Refuses what can never run. The core decides that; here it is put into a refusal's words."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._known: tuple[tuple[object, ...], EmptyPool] | None = None

    def check(self, job: JobRecord, submission: JobSubmission) -> None:
        """Refuse a job that could not run even if nobody used the pool and all of it worked (R22).

        Errors: InvalidInput where the machines cannot, Refused where a rule forbids it.
        """
        seen = self._observed.now
        never = self._empty_pool(seen).why_never(candidate(job, seen))
        if never is None:
            return
        settings = seen.configuration.project(job.project)
        if settings is not None:
            room = capacity(seen, preemptible=submission.preemptible)
            check_size(submission, settings, seen.configuration, room)
            check_places(submission, seen.default_amounts.of(submission), seen.inventory)
        kind = Refused if never.code in REFUSED else InvalidInput
        raise kind(
            f"It can never run: it {never.text}. {sentence(never.remedy)}",
            code=str(never.code),
            numbers=dict(never.numbers),
        )

    def _empty_pool(self, seen: Observations) -> EmptyPool:
        made_of = (seen.inventory, seen.configuration, seen.users)
        known = self._known
        if known is None or any(a is not b for a, b in zip(known[0], made_of, strict=True)):
            known = self._known = made_of, empty_pool(seen)
        return known[1]


def check_places(submission: JobSubmission, asked: JobSpec, inventory: Inventory) -> None:
    """Say of a job why no machine, or no domain of its level, could ever take it.

    Args:
        asked: What it asks for with what the pool gives by default.

    Errors: InvalidInput ``no-such-model``, ``larger-than-node``, ``larger-than-level``.
    """
    asks = asked.gpu_models or asked.cpus or asked.memory_gib
    if not asks and asked.required_level is None:
        return
    nodes = _of_model(asked, inventory)
    _check_node(submission, asked, inventory, nodes)
    _check_domain(asked, inventory, nodes)


def _of_model(asked: JobSpec, inventory: Inventory) -> Sequence[str]:
    """Return the places with a model that the job accepts. Errors: InvalidInput."""
    wanted = asked.gpu_models
    models = {place: devices[0].model for place, devices in inventory.places.items()}
    found = [
        place
        for place, model in models.items()
        if (model in wanted if wanted else place not in inventory.slices)
    ]
    if found or not models:
        return found
    known = sorted(set(models.values()))
    raise InvalidInput(
        f"No machine for training has a GPU of model {' or '.join(wanted)}"
        f"{nearest(wanted[0], known)} It can never run as it is.",
        code="no-such-model",
        field="gpu_models",
        numbers={"models": len(known)},
    )


def _check_node(
    submission: JobSubmission, asked: JobSpec, inventory: Inventory, nodes: Sequence[str]
) -> None:
    if any(_holds(asked, inventory, name) for name in nodes):
        return
    gpus = max((len(inventory.places[name]) for name in nodes), default=0)
    for field, words, most in (
        ("gpus", "GPUs", gpus),
        ("cpus", "cores", _most(inventory, nodes, "cpus")),
        ("memory_gib", "GiB of memory", _most(inventory, nodes, "memory_gib")),
    ):
        amount = getattr(asked, field)
        if amount > most:
            unnamed = amount != getattr(submission, field)
            by_default = ", the default of this pool for a job that names none," if unnamed else ""
            raise InvalidInput(
                f"{amount:g} {words} for a worker{by_default} can never run: of the machines that "
                f"it accepts the largest has {most:g}. Ask for at most {most:g} per worker.",
                code="larger-than-node",
                field=field,
                numbers={"asked": amount, "limit": most},
            )
    if nodes:
        raise InvalidInput(
            f"{asked.gpus} GPUs with {asked.cpus:g} cores and {asked.memory_gib:g} "
            "GiB of memory for a worker can never run: no machine has all of that. Ask for less "
            "per worker.",
            code="larger-than-node",
            field="gpus",
            numbers={
                "gpus": asked.gpus,
                "cpus": asked.cpus,
                "memory_gib": asked.memory_gib,
            },
        )


def _check_domain(asked: JobSpec, inventory: Inventory, nodes: Sequence[str]) -> None:
    level = asked.required_level
    if level is None:
        return
    room: dict[tuple[str, ...], int] = {}
    for name in nodes:
        domain = _domain(inventory, name, level)
        if domain is not None:
            room[domain] = room.get(domain, 0) + _slots(asked, inventory, name)
    workers, most = asked.min_workers or asked.workers, max(room.values(), default=0)
    if workers > most:
        raise InvalidInput(
            f"{count(workers, 'worker')} with {count(asked.gpus, 'GPU')} can never run inside "
            f"one {level}: the largest holds {most}. Ask for at most {count(most, 'worker')}, or "
            "prefer the level instead of requiring it.",
            code="larger-than-level",
            field="required_level",
            numbers={"asked": workers, "limit": most},
        )


def _domain(inventory: Inventory, name: str, level: str) -> tuple[str, ...] | None:
    if level == NODE_LEVEL:
        return (name,)
    labels = inventory.facts.get(node_of(name), UNKNOWN).labels
    found: list[str] = []
    for each in inventory.configuration.topology:
        if each.name == level:
            value = labels.get(each.label)
            return (*found, value) if value else None
        found.append(labels.get(each.label, ""))
    return None


def _holds(asked: JobSpec, inventory: Inventory, name: str) -> bool:
    return _slots(asked, inventory, name) > 0


def _slots(asked: JobSpec, inventory: Inventory, name: str) -> int:
    """Return how many workers a machine holds when it is empty."""
    facts = inventory.facts.get(node_of(name), UNKNOWN)
    slots = len(inventory.places[name]) // asked.gpus
    for amount, there in ((asked.cpus, facts.cpus), (asked.memory_gib, facts.memory_gib)):
        if amount and there is not None:
            slots = min(slots, int(there / amount))
    return slots


def _most(inventory: Inventory, nodes: Iterable[str], what: str) -> float:
    """Return the most that one of these machines has; where one has no bound there is none."""
    found = [getattr(inventory.facts.get(node_of(name), UNKNOWN), what) for name in nodes]
    return float("inf") if None in found else max(found, default=0.0)
