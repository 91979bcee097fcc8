"""Gang hints in the Job of an attempt, for clusters that schedule workloads themselves.

Since 1.36 Kubernetes supports gangs (``Workload``, ``PodGroup``), and the Job controller creates
such objects. benchpool decides the placement, so the default adds no hints (docs/decisions/0107).
"""

from __future__ import annotations

from typing import Any, Protocol

Manifest = dict[str, Any]


class WorkloadHints(Protocol):
    """Port: additions to the spec of an attempt's Job."""

    def job_fields(self, workers: int) -> Manifest:
        """Return fields of a Job's ``spec`` for a gang with this number of workers."""
        ...


class NoHints:
    """No hints: the Job controller then creates a group with the policy ``basic``, if any."""

    def job_fields(self, workers: int) -> Manifest:
        """Return nothing.

        >>> NoHints().job_fields(2)
        {}
        """
        return {}


class GangHints:
    """``spec.scheduling`` of KEP-5547: workers are bound together and evicted together.

    For clusters from 1.37 on with the gate ``WorkloadWithJob``; other versions ignore the field.
    """

    def job_fields(self, workers: int) -> Manifest:
        """Return the fields for a gang; none for a single worker.

        >>> GangHints().job_fields(2)["scheduling"]["schedulingPolicy"]
        {'gang': {'minCount': 2}}
        >>> GangHints().job_fields(1)
        {}
        """
        if workers < 2:
            return {}
        return {
            "scheduling": {
                "schedulingPolicy": {"gang": {"minCount": workers}},
                "disruptionMode": {"all": {}},
            }
        }
