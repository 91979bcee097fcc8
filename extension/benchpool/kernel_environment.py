"""Environment of this notebook or terminal, read from the variables that the spawner sets.

On one machine, jobs see the same files and the same Python. In a pod of a cluster, a job runs in
the notebook's own image. The folder is available there only if many pods can mount the home volume
at the same time. Otherwise the folder's files are sent with the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.client.imports.unseen import HOME, IMAGE, SHARED


@dataclass(frozen=True, slots=True)
class KernelEnvironment:
    """Image and files of this process that a job sees.

    Attributes:
        image: Container image of this process; None outside a cluster.
        files_travel: Whether the folder's files must be sent with a job.
    """

    image: str | None = None
    files_travel: bool = False


def kernel_environment(environ: Mapping[str, str]) -> KernelEnvironment:
    """Return the environment described by these variables.

    >>> kernel_environment({})
    KernelEnvironment(image=None, files_travel=False)
    >>> kernel_environment({"BENCHPOOL_IMAGE": "lab/notebook:1"})
    KernelEnvironment(image='lab/notebook:1', files_travel=True)
    >>> with_home = {"BENCHPOOL_IMAGE": "lab/notebook:1", "BENCHPOOL_HOME": "shared"}
    >>> kernel_environment(with_home).files_travel
    False
    """
    image = environ.get(IMAGE) or None
    return KernelEnvironment(image, image is not None and environ.get(HOME) != SHARED)
