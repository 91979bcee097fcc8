"""The service: durable submissions, the loop of passes, leases, rights and views."""

from benchpool_scheduler.service.caller import Caller
from benchpool_scheduler.service.clock import Clock, SystemClock
from benchpool_scheduler.service.events import Event
from benchpool_scheduler.service.launching import allowed_environment
from benchpool_scheduler.service.metrics import Metrics
from benchpool_scheduler.service.objects import ObjectWriter
from benchpool_scheduler.service.pool import Pool
from benchpool_scheduler.service.site import Containers

__all__ = [
    "Caller",
    "Clock",
    "Containers",
    "Event",
    "Metrics",
    "ObjectWriter",
    "Pool",
    "SystemClock",
    "allowed_environment",
]
