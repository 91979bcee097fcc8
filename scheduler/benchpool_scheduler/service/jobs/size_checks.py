"""Refusal of jobs that are too large to ever run, with the nearest size that can run (R22).

Sizes are tried on the core, which also decides later, so that a suggested size is accepted.
Machines differ, and a limit may be below the size of the largest machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from benchpool_scheduler.configuration import Configuration, ProjectSettings
from benchpool_scheduler.configuration.nodes import nearest
from benchpool_scheduler.contract import JobSubmission
from benchpool_scheduler.contract.spec import JobSpec
from benchpool_scheduler.core.capacity.domains import NODE_LEVEL
from benchpool_scheduler.errors import InvalidInput, Refused
from benchpool_scheduler.phrases import count
from benchpool_scheduler.service.benches.bench_reserve import Capacity
from benchpool_scheduler.service.observed.inventory import UNKNOWN, Inventory, node_of

Could = Callable[..., bool]
"""Returns whether the job could run with other values of fields of its ``JobSpec``."""


def most_that_can(could: Callable[[int], bool], asked: float) -> int:
    """Return the largest whole amount below the requested one with which the job could run; 0 if
    none.

    >>> most_that_can(lambda gpus: gpus <= 6, 8), most_that_can(lambda gpus: False, 8)
    (6, 0)
    """
    least, most = 0, max(0, -int(-asked // 1) - 1)
    while least < most:
        middle = (least + most + 1) // 2
        if could(middle):
            least = middle
        else:
            most = middle - 1
    return least


def check_size(submission: JobSubmission, capacity: Capacity, could: Could) -> None:
    """Refuse a job that is larger than the machines. Errors: InvalidInput."""
    workers, gpus = submission.least_workers, submission.gpus
    least = gpus * workers
    fit = most_that_can(lambda fewer: could(gpus=fewer), gpus)
    if gpus > capacity.largest_node and fit:
        apart = could(gpus=fit, workers=-(-least // fit), min_workers=None)
        raise InvalidInput(
            f"{gpus} GPUs for a worker can never run: the largest machine has "
            f"{capacity.largest_node} for training. Ask for at most {fit} per "
            f"worker{', or for more workers' if apart else ''}.",
            code="larger-than-node",
            field="gpus",
            numbers={"asked": gpus, "limit": fit},
        )
    if least > capacity.total and (ways := _smaller(submission, could)):
        raise InvalidInput(
            f"{count(workers, 'worker')} with {count(gpus, 'GPU')} need {count(least, 'GPU')} and "
            f"can never run: the pool has {capacity.total} for training. {_advice(ways)}",
            code="larger-than-pool",
            field="workers",
            numbers={"asked": least, "limit": capacity.total},
        )


def check_bounds(
    submission: JobSubmission,
    settings: ProjectSettings,
    configuration: Configuration,
    could: Could,
) -> None:
    """Refuse a job that a limit or the rule for non-preemptible jobs (R8) forbids. Errors:
    Refused.
    """
    least = submission.gpus * submission.least_workers
    for above in configuration.upwards(settings.name):
        limit, quota = above.project.limit, above.project.quota
        if limit is not None and least > limit:
            raise Refused(
                f"{least} GPUs can never run: project {above.name} may hold at most {limit}. "
                + _advice(_smaller(submission, could), "ask an administrator to raise its limit"),
                code="project-limit",
                field="gpus",
                numbers={"asked": least, "limit": limit},
            )
        if not submission.preemptible and quota is not None and least > quota:
            ways = _smaller(submission, could)
            if could(preemptible=True):
                ways.append("allow preemption")
            raise Refused(
                f"{least} GPUs that may not be preempted can never run: project {above.name} is "
                f"guaranteed {quota}. " + _advice(ways, "ask an administrator to raise its quota"),
                code="non-preemptible-over-quota",
                field="preemptible",
                numbers={"asked": least, "quota": quota},
            )


def _smaller(submission: JobSubmission, could: Could) -> list[str]:
    """Return the nearest smaller sizes that can run."""
    ways, least = [], submission.least_workers
    if submission.min_workers is not None:
        fewer = most_that_can(lambda workers: could(min_workers=workers), least)
        ways += [f"set min_workers to at most {fewer}"] * bool(fewer)
    else:
        fewer = most_that_can(lambda workers: could(workers=workers), least)
        ways += [f"ask for at most {count(fewer, 'worker')}"] * bool(fewer)
    gpus = most_that_can(lambda gpus: could(gpus=gpus), submission.gpus)
    each = " per worker" if submission.workers > 1 else ""
    ways += [f"ask for at most {count(gpus, 'GPU')}{each}"] * bool(gpus)
    return ways


def _advice(ways: Sequence[str], last: str = "") -> str:
    """Return the suggestions as a sentence, or ``last`` if there are none.

    >>> _advice(["ask for at most 2 GPUs", "allow preemption"])
    'Ask for at most 2 GPUs, or allow preemption.'
    """
    text = ", or ".join(ways) or last
    return f"{text[:1].upper()}{text[1:]}."


def check_places(
    submission: JobSubmission, asked: JobSpec, inventory: Inventory, could: Could
) -> None:
    """Refuse a job that no machine, or no domain of its level, could ever hold.

    Args:
        asked: Its request, with the defaults of the pool filled in.

    Errors: InvalidInput ``no-such-model``, ``larger-than-node``, ``larger-than-level``.
    """
    asks = asked.gpu_models or asked.cpus or asked.memory_gib
    if not asks and asked.required_level is None:
        return
    nodes = _of_model(asked, inventory)
    _check_node(submission, asked, inventory, nodes, could)
    _check_domain(submission, asked, inventory, nodes, could)


def _of_model(asked: JobSpec, inventory: Inventory) -> Sequence[str]:
    """Return the places with a GPU model that the job accepts. Errors: InvalidInput."""
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
    submission: JobSubmission,
    asked: JobSpec,
    inventory: Inventory,
    nodes: Sequence[str],
    could: Could,
) -> None:
    if any(_holds(asked, inventory, name) for name in nodes):
        return
    ways = []
    for field, one, words, most in (
        ("gpus", "GPU", "GPUs", max((len(inventory.places[name]) for name in nodes), default=0)),
        ("cpus", "core", "cores", _most(inventory, nodes, "cpus")),
        ("memory_gib", *2 * ("GiB of memory",), _most(inventory, nodes, "memory_gib")),
    ):
        amount = getattr(asked, field)
        fit = most_that_can(partial(_with, could, field), amount)
        ways += [f"ask for at most {fit} {one if fit == 1 else words} per worker"] * bool(fit)
        if amount > most:
            unnamed = amount != getattr(submission, field)
            by_default = ", the default of this pool for a job that names none," if unnamed else ""
            raise InvalidInput(
                f"{amount:g} {words} for a worker{by_default} can never run: of the machines that "
                f"it accepts the largest has {most:g}. Ask for at most {fit or most:g} per worker"
                f"{'' if fit else ', and for less of the rest'}.",
                code="larger-than-node",
                field=field,
                numbers={"asked": amount, "limit": fit or most},
            )
    if nodes:
        raise InvalidInput(
            f"{asked.gpus} GPUs with {asked.cpus:g} cores and {asked.memory_gib:g} "
            "GiB of memory for a worker can never run: no machine has all of that. "
            + _advice(ways, "ask for less of two of them"),
            code="larger-than-node",
            field="gpus",
            numbers={
                "gpus": asked.gpus,
                "cpus": asked.cpus,
                "memory_gib": asked.memory_gib,
            },
        )


def _with(could: Could, field: str, amount: int) -> bool:
    return could(**{field: amount})


def _check_domain(
    submission: JobSubmission,
    asked: JobSpec,
    inventory: Inventory,
    nodes: Sequence[str],
    could: Could,
) -> None:
    level = asked.required_level
    if level is None:
        return
    room: dict[tuple[str, ...], int] = {}
    for name in nodes:
        domain = _domain(inventory, name, level)
        if domain is not None:
            room[domain] = room.get(domain, 0) + _slots(asked, inventory, name)
    workers, most = asked.least_workers, max(room.values(), default=0)
    if workers > most:
        ways = _smaller(submission, could)
        if could(required_level=None, preferred_level=level):
            ways.append("prefer the level instead of requiring it")
        raise InvalidInput(
            f"{count(workers, 'worker')} with {count(asked.gpus, 'GPU')} can never run inside "
            f"one {level}: the largest holds {most}. " + _advice(ways, "ask for less per worker"),
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
    """Return how many workers an empty machine holds."""
    facts = inventory.facts.get(node_of(name), UNKNOWN)
    slots = len(inventory.places[name]) // asked.gpus
    for amount, there in ((asked.cpus, facts.cpus), (asked.memory_gib, facts.memory_gib)):
        if amount and there is not None:
            slots = min(slots, int(there / amount))
    return slots


def _most(inventory: Inventory, nodes: Iterable[str], what: str) -> float:
    """Return the largest amount that one of these machines has; infinite if one has no limit."""
    found = [getattr(inventory.facts.get(node_of(name), UNKNOWN), what) for name in nodes]
    return float("inf") if None in found else max(found, default=0.0)
