"""The kinds of objects that we read and write, and where they lie.

>>> PODS.path("research", "worker-0")
'/api/v1/namespaces/research/pods/worker-0'
>>> NODES.path(None)
'/api/v1/nodes'
>>> JOBS.path(None)
'/apis/batch/v1/jobs'
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Kind:
    """A resource of the API server.

    Attributes:
        group: Empty for the core group.
        plural: The word in paths.
        kind: The word in objects.
        namespaced: False for objects of the whole cluster.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """What objects carry as ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Return the path of an object, or without a name that of the collection.

        Without a namespace a namespaced collection is that of all namespaces.
        """
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            if self.namespaced and namespace is None:
                raise ValueError(f"{self.kind} {name} needs a namespace")
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PODS = Kind("", "v1", "pods", "Pod")
NODES = Kind("", "v1", "nodes", "Node", namespaced=False)
NAMESPACES = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
SERVICES = Kind("", "v1", "services", "Service")
EVENTS = Kind("", "v1", "events", "Event")
CONFIG_MAPS = Kind("", "v1", "configmaps", "ConfigMap")
SECRETS = Kind("", "v1", "secrets", "Secret")
CLAIMS = Kind("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
VOLUMES = Kind("", "v1", "persistentvolumes", "PersistentVolume", namespaced=False)
JOBS = Kind("batch", "v1", "jobs", "Job")
NETWORK_POLICIES = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
LEASES = Kind("coordination.k8s.io", "v1", "leases", "Lease")
STORAGE_CLASSES = Kind("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False)
DEFINITIONS = Kind(
    "apiextensions.k8s.io",
    "v1",
    "customresourcedefinitions",
    "CustomResourceDefinition",
    namespaced=False,
)
