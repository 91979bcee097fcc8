"""Reverse proxy for users' services, behind the Hub's proxy; every caller is authenticated.

Entry point: ``service_gate.ServiceGate``. ``directory`` is its interface to the services. The gate
does not depend on jobs.
"""

from benchpool_scheduler.gate.directory import Backend, Openness, ServiceDirectory, ServiceRoute
from benchpool_scheduler.gate.figures import ServiceFigures
from benchpool_scheduler.gate.service_gate import ServiceGate

__all__ = [
    "Backend",
    "Openness",
    "ServiceDirectory",
    "ServiceFigures",
    "ServiceGate",
    "ServiceRoute",
]
