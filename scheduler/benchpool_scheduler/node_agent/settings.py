"""The settings of the agent, and the only place that reads its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What the agent is told.

    Attributes:
        url: Where the scheduler's service is, with its prefix.
        node: The node's name in the cluster.
        token: File of the pod's token; it is read before each report, for the kubelet renews it.
        kubelet: Socket of the kubelet's pod resources.
        cgroups: Folder below which the kernel counts for pods (cgroups v2).
        every_s: Seconds between two looks, until the scheduler says other ones.
    """

    url: str
    node: str
    token: Path
    kubelet: Path
    cgroups: Path
    every_s: float

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> AgentSettings:
        """Return the settings. Errors: KeyError for one that is missing, ValueError.

        >>> settings = AgentSettings.read({"BENCHPOOL_URL": "http://s:8080/b/",
        ...                                "BENCHPOOL_NODE_NAME": "n0"})
        >>> settings.url, str(settings.cgroups), settings.every_s
        ('http://s:8080/b', '/host/cgroup', 10.0)
        """
        return cls(
            url=environ["BENCHPOOL_URL"].rstrip("/"),
            node=environ["BENCHPOOL_NODE_NAME"],
            token=Path(environ.get("BENCHPOOL_TOKEN_FILE", "/run/benchpool/token")),
            kubelet=Path(environ.get("BENCHPOOL_KUBELET", "/host/pod-resources/kubelet.sock")),
            cgroups=Path(environ.get("BENCHPOOL_CGROUPS", "/host/cgroup")),
            every_s=float(environ.get("BENCHPOOL_SAMPLE_S", "10")),
        )
