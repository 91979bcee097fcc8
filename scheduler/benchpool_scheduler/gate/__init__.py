"""The way to people's services: a reverse proxy behind the Hub's, where nobody passes unknown.

Its door is ``service_gate.ServiceGate``; what it is told of services is ``directory``. It knows
nothing of jobs.
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
