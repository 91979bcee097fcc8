"""The table of operations: the only place where a verb of the API is written.

Read from it are the handlers' addresses, both clients, the plain verbs of the command line, what
the notebook server passes on, the forms of pages, and the OpenAPI document.
"""

from __future__ import annotations

from typing import Any

from benchpool_scheduler.contract.actions import JobActions
from benchpool_scheduler.contract.operation import Operation, declared
from benchpool_scheduler.contract.operations.access import AccessOperations
from benchpool_scheduler.contract.operations.audit import AuditOperations
from benchpool_scheduler.contract.operations.configuration import ConfigurationOperations
from benchpool_scheduler.contract.operations.gpu_use import GpuUseOperations
from benchpool_scheduler.contract.operations.jobs import JobOperations
from benchpool_scheduler.contract.operations.nodes import NodeOperations
from benchpool_scheduler.contract.operations.notifications import NotificationOperations
from benchpool_scheduler.contract.operations.people import PeopleOperations
from benchpool_scheduler.contract.operations.planning import PlanningOperations
from benchpool_scheduler.contract.operations.pool import (
    BenchOperations,
    ContentOperations,
    LogOperations,
    PoolOperations,
    ServiceOperations,
)


class Operations(
    JobOperations,
    JobActions,
    LogOperations,
    PoolOperations,
    GpuUseOperations,
    PeopleOperations,
    BenchOperations,
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
