"""The store on custom resources (``store``) and uploaded contents (``fsspec_objects``)."""

from benchpool_scheduler.store.kubernetes.encoding import WaitReport
from benchpool_scheduler.store.kubernetes.fsspec_objects import FsspecObjects
from benchpool_scheduler.store.kubernetes.store import KubernetesStore

__all__ = ["FsspecObjects", "KubernetesStore", "WaitReport"]
