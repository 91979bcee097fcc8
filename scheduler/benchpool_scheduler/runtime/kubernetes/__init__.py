"""Workers as pods of a cluster: benchpool admits and places, Kubernetes runs."""

from .desk import Desk
from .runtime import KubernetesRuntime
from .settings import ClusterSettings
from .tokens import Tokens

__all__ = ["ClusterSettings", "Desk", "KubernetesRuntime", "Tokens"]
