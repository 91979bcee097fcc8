"""Table of operations: the single declaration of every verb of the API.

The handlers' addresses, both clients, the plain verbs of the command line, the proxy of the
notebook server, the forms of pages, and the OpenAPI document are built from it.
"""

from __future__ import annotations

from typing import Any

from benchpool_scheduler.contract.actions import JobActions
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.contract.operations.access import AccessOperations
from benchpool_scheduler.contract.operations.audit import AuditOperations
from benchpool_scheduler.contract.operations.configuration import ConfigurationOperations
from benchpool_scheduler.contract.operations.gpu_use import GpuUseOperations
from benchpool_scheduler.contract.operations.idle_benches import IdleBenchOperations
from benchpool_scheduler.contract.operations.jobs import JobOperations
from benchpool_scheduler.contract.operations.nodes import NodeOperations
from benchpool_scheduler.contract.operations.notifications import NotificationOperations
from benchpool_scheduler.contract.operations.parking import ParkingOperations
from benchpool_scheduler.contract.operations.people import PeopleOperations
from benchpool_scheduler.contract.operations.planning import PlanningOperations
from benchpool_scheduler.contract.operations.pool import (
    BenchOperations,
    ContentOperations,
    LogOperations,
    PoolOperations,
    ServiceOperations,
)
from benchpool_scheduler.contract.operations.runs import RunOperations
from benchpool_scheduler.contract.operations.schedules import ScheduleOperations
from benchpool_scheduler.contract.operations.serving import ServingOperations
from benchpool_scheduler.contract.operations.shells import ShellOperations
from benchpool_scheduler.contract.operations.sweeps import SweepOperations


class Operations(
    JobOperations,
    JobActions,
    RunOperations,
    ShellOperations,
    SweepOperations,
    ScheduleOperations,
    ServingOperations,
    LogOperations,
    PoolOperations,
    GpuUseOperations,
    PeopleOperations,
    BenchOperations,
    ParkingOperations,
    IdleBenchOperations,
    NodeOperations,
    ContentOperations,
    AccessOperations,
    NotificationOperations,
    ConfigurationOperations,
    PlanningOperations,
    AuditOperations,
    ServiceOperations,
):
    """All operations of the API."""


OPERATIONS: tuple[Operation[Any], ...] = declared(Operations)
"""All operations in the order of the reference."""

__all__ = ["OPERATIONS", "JobActions", "Operations"]
