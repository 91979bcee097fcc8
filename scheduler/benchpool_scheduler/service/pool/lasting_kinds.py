"""Creators of jobs that outlive their jobs: sweeps, schedules, services, external pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchpool_scheduler.service.jobs.admission import Admission
from benchpool_scheduler.service.jobs.admitted.admitted_runner import AdmittedRunner
from benchpool_scheduler.service.jobs.commands import Commands
from benchpool_scheduler.service.jobs.schedules.schedule_verbs import Schedules
from benchpool_scheduler.service.jobs.serving.last_answers import LastAnswers
from benchpool_scheduler.service.jobs.serving.replica_network import ReplicaNetwork
from benchpool_scheduler.service.jobs.serving.service_verbs import Services
from benchpool_scheduler.service.jobs.sweeps.sweep_verbs import Sweeps
from benchpool_scheduler.service.views.job_views import JobViews

if TYPE_CHECKING:
    from benchpool_scheduler.service.pool.pool import Pool


def of(
    pool: Pool, admission: Admission, commands: Commands, views: JobViews
) -> tuple[Sweeps, Schedules, Services, AdmittedRunner]:
    """Return the operations of sweeps, schedules and services, and the runner of external pods."""
    ledger, observed = pool.ledger, pool.observed
    network = ReplicaNetwork.of(pool.runtime)
    services = Services.of(ledger, observed, admission, commands, pool.uploads, views, network)
    table = services.views.table
    live, clock = pool.metering.live, observed.settings.clock
    services.views.use_of = lambda job: live.of_job(job, clock.now())
    pool.actions.serves = services.book.port_of
    pool.actions.before_stop = LastAnswers(services.book, lambda: table.counts).given
    return (
        Sweeps.of(ledger, observed, admission, commands, pool.sweep_book, pool.curves),
        Schedules.of(ledger, observed, admission, pool.uploads),
        services,
        AdmittedRunner(ledger, observed, admission, commands, pool.runtime),
    )
