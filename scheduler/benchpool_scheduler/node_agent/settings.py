"""Settings of the agent, and the only module that reads its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """Settings of the agent.

    Attributes:
        url: Address of the scheduler's service, with its prefix.
        node: The node's name in the cluster.
        token: File of the pod's token; read for each report, since the kubelet renews it.
        kubelet: Socket of the kubelet's pod resources.
        cgroups: Folder with the cgroups of pods (cgroups v2).
        every_s: Interval between measurements until the scheduler sets another one, in seconds.
    """

    url: str
    node: str
    token: Path
    kubelet: Path
    cgroups: Path
    every_s: float

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> AgentSettings:
        """Return the settings. Raises KeyError for a missing one, and ValueError.

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
