"""List of the pool's background tasks, with their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchpool_scheduler.service.housekeeping.reservation_edges import ReservationEdges
from benchpool_scheduler.service.jobs.deadline_watch import DeadlineWatch
from benchpool_scheduler.service.pool.background_tasks import BackgroundTasks
from benchpool_scheduler.service.pool.job_history_loader import JobHistoryLoader

if TYPE_CHECKING:
    from benchpool_scheduler.service.pool.pool import Pool


def begin_parts(pool: Pool, parts: BackgroundTasks, older: JobHistoryLoader) -> None:
    """Start all background tasks in this order."""
    begin = parts.begin
    begin("what hears of workers", pool.watcher.listen())
    begin("what takes the events of workers", pool.watcher.run())
    begin("what makes passes", pool.passes.run())
    begin("what looks after machines and people", pool.housekeeping.run())
    begin("what closes and opens machines", pool.nodes.run())
    begin("what records who has which GPU", pool.use.run())
    begin("what estimates starts", pool.estimates.run())
    begin("what looks at idle benches", pool.idle.run())
    begin("what keeps curves", pool.curves.run())
    begin("what carries sweeps on", pool.sweeps.runner.run())
    begin("what looks for jobs that hang", pool.inside.hangs.run())
    edges = ReservationEdges(pool.observed, pool.want_pass)
    begin("what begins and ends reservations", edges.run())
    late = DeadlineWatch(pool.ledger, pool.observed, pool.estimates)
    begin("what looks at deadlines", late.run())
    begin("what sends by schedules", pool.schedules.runner.run())
    begin("what carries services on", pool.services.runner.run())
    begin("what admits pods of others", pool.admitted.run(), may_return=True)
    begin("what measures use", pool.metering.run(), may_return=True)
    begin("what reads the history", older.read(), may_return=True)
    begin("what parks benches", pool.reservations.parking.run(), may_return=True)
    begin("what takes in written jobs", pool.inbound.run(), may_return=True)
    begin("what announces reasons", pool.announcer.run(), may_return=True)
    begin("what sends messages", pool.deliveries.run(), may_return=True)
