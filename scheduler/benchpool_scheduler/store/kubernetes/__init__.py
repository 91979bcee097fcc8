"""The store on custom resources, see ``store``; uploaded contents, see ``objects``."""

from benchpool_scheduler.store.kubernetes.objects import FsspecObjects
from benchpool_scheduler.store.kubernetes.store import KubernetesStore
from benchpool_scheduler.store.kubernetes.translation import Told

__all__ = ["FsspecObjects", "KubernetesStore", "Told"]
