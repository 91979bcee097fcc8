"""Workers as pods of a cluster: benchpool admits and places, Kubernetes runs."""

from .agent_api import AgentApi
from .agent_tokens import AgentTokens
from .cluster_settings import ClusterSettings
from .runtime import KubernetesRuntime

__all__ = ["AgentApi", "AgentTokens", "ClusterSettings", "KubernetesRuntime"]
