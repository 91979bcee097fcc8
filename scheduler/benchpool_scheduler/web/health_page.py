"""State of scheduler, Hub, store and GPUs for administrators: figures, or remedies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchpool_scheduler.contract import Gpu, GpuState
from benchpool_scheduler.phrases import count, data_size
from benchpool_scheduler.service import Pool
from benchpool_scheduler.service.access import rights
from benchpool_scheduler.web.doubts import doubts_view
from benchpool_scheduler.web.pages import PageHandler
from benchpool_scheduler.web.pool_view import gpu_places

TOPICS: Mapping[str, str] = {
    "hub": "Hub",
    "groups": "Hub",
    "hub-database": "Hub",
    "lost-benches": "Hub",
    "left-users": "Hub",
    "disk": "Store",
    "backup": "Store",
    "audit": "Store",
    "unreadable": "Store",
    "configuration-versions": "Store",
    "devices": "GPUs",
}
"""Line of a problem, by its topic; other topics belong to the scheduler."""


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One component: ``fact`` is its figure; ``problems`` have cause and remedy."""

    name: str
    fact: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HealthFigures:
    """Figures of the components without problems; ``disk_free`` is None if unknown."""

    passes: int
    last_pass_s: float
    users: int
    servers: int | None
    store_bytes: int
    disk_free: int | None
    disk_size: int
    breaches: int


class HealthHandler(PageHandler):
    """``GET <prefix>health``."""

    async def get(self) -> None:
        """Show the page. Errors: Forbidden for users who are not administrators."""
        caller = await self.reader()
        rights.require_admin(caller, "see the health of the pool")
        pool = self.site.pool
        lines = lines_of(pool, pool.views.status(caller).gpus)
        wrong = [line.name for line in lines if line.problems]
        unknown, known = pool.adoption.doubts(caller), pool.observed.now.safe_mode
        doubts = doubts_view(unknown, known, self.site.now())
        facts = self.facts(back="health")
        await self.show("health.html", facts, lines=lines, wrong=wrong, doubts=doubts)


def lines_of(pool: Pool, gpus: Sequence[Gpu]) -> tuple[HealthLine, ...]:
    """Return the state of a pool's components."""
    return tuple(health_lines(_figures(pool), pool.observed.now.problems, gpus))


def _figures(pool: Pool) -> HealthFigures:
    found, directory = pool.figures.read(), pool.observed.settings.directory
    servers = directory.servers()
    return HealthFigures(
        passes=found.passes,
        last_pass_s=found.last_pass_s,
        users=len(directory.users()),
        servers=None if servers is None else len(servers),
        store_bytes=found.store_bytes,
        disk_free=None if found.disk is None else found.disk.free,
        disk_size=0 if found.disk is None else found.disk.size,
        breaches=sum(found.breaches.values()),
    )


def health_lines(
    figures: HealthFigures, problems: Mapping[str, str], gpus: Sequence[Gpu]
) -> Iterator[HealthLine]:
    """Yield a line for each component.

    Args:
        problems: Sentences by their topic.
    """
    facts = {
        "Scheduler": f"its last pass took {figures.last_pass_s * 1000:.1f} ms; "
        f"{figures.passes} since its start",
        "Hub": _hub(figures),
        "Store": _store(figures),
        "GPUs": _gpus(gpus),
    }
    for name, fact in facts.items():
        texts = [text for topic, text in problems.items() if TOPICS.get(topic, "Scheduler") == name]
        if name == "GPUs":
            texts = list(_broken(gpus)) or texts
        if name == "Scheduler" and figures.breaches:
            texts.append(
                f"{count(figures.breaches, 'invariant violation')} since its start. "
                "Report them to the developers, with the log lines that name them."
            )
        yield HealthLine(name, fact, tuple(texts))


def _hub(figures: HealthFigures) -> str:
    users = count(figures.users, "user")
    if figures.servers is None:
        return f"{users}; number of servers not known yet"
    return f"{users}, {count(figures.servers, 'server')} running or starting"


def _store(figures: HealthFigures) -> str:
    held = f"the database takes {data_size(figures.store_bytes)}"
    if figures.disk_free is None:
        return held
    return f"{held}; {data_size(figures.disk_free)} of {data_size(figures.disk_size)} are free"


def _gpus(gpus: Sequence[Gpu]) -> str:
    bad = sum(gpu.state is GpuState.BROKEN for gpu in gpus)
    return f"{len(gpus) - bad} of {count(len(gpus), 'GPU')} can be used"


def _broken(gpus: Sequence[Gpu]) -> Iterator[str]:
    for gpu in gpus:
        if gpu.state is GpuState.BROKEN:
            note = f" ({gpu.note})" if gpu.note else ""
            yield (
                f"GPU {gpu_places([gpu])} is broken{note}. Check it with `nvidia-smi` on that "
                "machine; drain the machine before you work on it."
            )
