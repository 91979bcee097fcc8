"""Reservations of GPUs for projects in ``benchpool.yaml``, and their effect on a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from benchpool_scheduler.configuration.nodes import Item, nearest
from benchpool_scheduler.configuration.settings import Configuration, ProjectSettings
from benchpool_scheduler.core.fairness import reservations
from benchpool_scheduler.core.fairness.reservations import QuotaReservation
from benchpool_scheduler.core.model import ProjectName
from benchpool_scheduler.phrases import count

ENTRY = ("name", "project", "gpus", "from", "until")
MOST, MOST_GPUS = 1000, 100_000


def entries(
    item: Item, projects: Sequence[ProjectSettings], zone: str
) -> tuple[QuotaReservation, ...]:
    """Parse the section ``reservations``. Errors: InvalidInput.

    Args:
        zone: Time zone of times without a zone.
    """
    found: dict[str, QuotaReservation] = {}
    for number, entry in enumerate(item.items()):
        if number >= MOST:
            item.wrong(f"has more than {MOST} entries; remove expired ones.", limit=MOST)
        one = _entry(entry, projects, zone)
        if one.name in found:
            entry.wrong(f"has the name {one.name!r} of another reservation; names must be unique.")
        found[one.name] = one
    return tuple(found.values())


def _entry(item: Item, projects: Sequence[ProjectSettings], zone: str) -> QuotaReservation:
    keys = item.entries(ENTRY)
    for key in ENTRY:
        if key not in keys or keys[key].is_null():
            item.wrong(f"has no `{key}`; a reservation has a name, a project, GPUs, and two times.")
    found = QuotaReservation(
        name=keys["name"].text(),
        project=_project(keys["project"], projects),
        gpus=keys["gpus"].whole(least=1, most=MOST_GPUS),
        begins_s=_instant(keys["from"], zone),
        ends_s=_instant(keys["until"], zone),
    )
    if found.ends_s <= found.begins_s:
        item.wrong("ends before it begins; make `until` later than `from`.")
    return found


def _project(item: Item, projects: Sequence[ProjectSettings]) -> ProjectName:
    name = ProjectName(item.text())
    known = {it.name: it for it in projects}
    if name not in known:
        item.wrong(f"is {name!r}, which is not a project{nearest(name, list(known))}")
    if known[name].project.quota is None:
        item.wrong(f"is {name!r}, which is already guaranteed all GPUs; omit it.")
    return name


def _instant(item: Item, zone: str) -> float:
    value = item.scalar()
    advice = "write a time as '2026-11-28 14:00', followed by a time zone if it is not the site's."
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        item.wrong(f"is {str(value)[:40]!r}; {advice}")
    if not 1970 <= found.year < 9999:
        item.wrong(f"is in the year {found.year}; {advice}")
    return (found if found.tzinfo else found.replace(tzinfo=ZoneInfo(zone))).timestamp()


def in_words(one: QuotaReservation, zone: str) -> str:
    """Return a reservation in words, with its times in a zone.

    >>> in_words(QuotaReservation("paper", ProjectName("vision"), 4, 0.0, 90_000.0), "UTC")
    '4 GPUs for project vision from 1970-01-01 00:00 to 1970-01-02 01:00 (UTC)'
    """
    begins, ends = (
        datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(" ", "minutes")[:16]
        for at in (one.begins_s, one.ends_s)
    )
    gpus = count(one.gpus, "GPU")
    return f"{gpus} for project {one.project} from {begins} to {ends} ({zone})"


def with_reservations(own: Configuration, now: float) -> Configuration:
    """Return a configuration with the reservations that are active at ``now``.

    The same object is returned if none is active.
    """
    there = reservations.standing(own.reservations, now)
    if not there:
        return own
    raised = reservations.raised([it.project for it in own.projects], there)
    pairs = zip(own.projects, raised, strict=True)
    return replace(own, projects=tuple(replace(it, project=project) for it, project in pairs))
