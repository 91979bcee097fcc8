"""Output of services."""

from __future__ import annotations

from collections.abc import Sequence

from benchpool_scheduler.cli import words
from benchpool_scheduler.cli.screen import Column, Screen
from benchpool_scheduler.contract.serving import PoolService, ServiceAccess
from benchpool_scheduler.phrases import count, duration, gpu_use

EVENTS = 5
"""Number of newest events to print."""
SERVICE_COLUMNS = (
    Column("NAME", width=18),
    Column("USER", width=12),
    Column("STATE"),
    Column("REPLICAS", align="right"),
    Column("REQUESTS/S", align="right"),
    Column("P95", align="right"),
    Column("ADDRESS"),
)


def services(screen: Screen, found: Sequence[PoolService]) -> None:
    """Print services, one line each."""
    if not found:
        screen.line(
            "No services. `benchpool serve NAME -- COMMAND` creates one; `benchpool services "
            "--all` also lists those of other users that you may open."
        )
        return
    screen.table(
        SERVICE_COLUMNS,
        [
            (
                one.name,
                words.clean(one.user),
                one.state.value,
                f"{one.wanted}/{one.max_replicas}",
                f"{one.times.requests_per_s:.1f}",
                "-" if one.times.p95_ms is None else f"{one.times.p95_ms:.0f} ms",
                one.url,
            )
            for one in found
        ],
    )


def service(screen: Screen, one: PoolService) -> None:
    """Print a service: its state, its replicas and its requests."""
    screen.heading(f"{one.name} version {one.version}, project {words.clean(one.project)}")
    screen.line(words.clean(one.text))
    screen.line(f"Address: {screen.link(one.url)}")
    screen.line(f"Open to: {words.clean(opens(one))}")
    screen.line(words.clean(asked(one)))
    screen.line(came(one))
    for it in one.replicas:
        id_ = words.short(it.job)
        use = gpu_use(it.gpu_activity, it.gpu_memory_used_gib)
        how = f"{it.phase}  GPU {use}" if use else it.phase
        screen.line(f"  {id_}  version {it.version}  {how}  log: benchpool logs -f {id_}")
        if it.text:
            screen.line(f"    {words.clean(it.text)}")
    for event in one.events[:EVENTS]:
        screen.line(f"  {words.local(event.at)}  {words.clean(event.text)}")


def opens(one: PoolService) -> str:
    """Return who may open a service."""
    besides = f"{one.user}, leads of {one.project} and administrators"
    match one.access:
        case ServiceAccess.OWNER:
            return besides
        case ServiceAccess.PROJECT:
            return f"members of {one.project}; {besides}"
        case ServiceAccess.GROUP:
            return f"the Hub's group {one.group or '(of others)'}; {besides}"
        case ServiceAccess.EVERYONE:
            return "all logged-in users"


def asked(one: PoolService) -> str:
    """Return the number of replicas of a service, and when it sleeps."""
    few, many = one.min_replicas, one.max_replicas
    number = count(few, "replica") if few == many else f"{few} to {count(many, 'replica')}"
    gpus = f"{count(one.gpus, 'GPU')} each"
    sleeps = f"; asleep after {duration(one.idle_s)} without requests" if few == 0 else ""
    return f"{number}, {gpus}{sleeps}"


def came(one: PoolService) -> str:
    """Return the request figures of the last minute."""
    times = one.times
    if times.p50_ms is None or times.p95_ms is None:
        return f"Requests: {times.in_flight} in flight, none answered in the last minute"
    return (
        f"Requests: {times.requests_per_s:.1f} a second, p50 {times.p50_ms:.0f} ms, p95 "
        f"{times.p95_ms:.0f} ms, {times.in_flight} in flight"
    )
