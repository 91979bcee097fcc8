"""Scheduler service: durable submissions, the pass loop, leases, permissions and views."""

from benchpool_scheduler.service.access.caller import Caller
from benchpool_scheduler.service.administration.audit_trail import AuditEvent
from benchpool_scheduler.service.administration.reconfiguration import CONFIGURATION
from benchpool_scheduler.service.execution.launching import allowed_environment
from benchpool_scheduler.service.jobs.serving.service_verbs import Services
from benchpool_scheduler.service.jobs.serving.traffic import ServiceFlow
from benchpool_scheduler.service.jobs.uploads import ObjectWriter
from benchpool_scheduler.service.observed.service_settings import Containers, DefaultAmounts
from benchpool_scheduler.service.pool.figures import MeasuredGpu, Metrics
from benchpool_scheduler.service.pool.pool import Pool
from benchpool_scheduler.service.process.clock import Clock, SystemClock
from benchpool_scheduler.service.views.events import FeedEvent

__all__ = [
    "CONFIGURATION",
    "AuditEvent",
    "Caller",
    "Clock",
    "Containers",
    "DefaultAmounts",
    "FeedEvent",
    "MeasuredGpu",
    "Metrics",
    "ObjectWriter",
    "Pool",
    "ServiceFlow",
    "Services",
    "SystemClock",
    "allowed_environment",
]
