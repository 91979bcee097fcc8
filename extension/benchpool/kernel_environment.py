"""Where this notebook or terminal runs, as the spawner has written it into the environment.

On one machine jobs see the same files and the same Python. In a pod of a cluster a job runs in the
notebook's own image; the folder is there as well only where the home volume can be mounted by many
pods at the same time. Else the folder's files go with the job.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchpool_scheduler.client.imports.unseen import HOME, IMAGE, SHARED


@dataclass(frozen=True, slots=True)
class KernelEnvironment:
    """What a job sees of the image and the files that this process has.

    Attributes:
        image: The container image that this runs in, None outside of a cluster.
        files_travel: A job does not see this folder unless its files go with it.
    """

    image: str | None = None
    files_travel: bool = False


def kernel_environment(environ: Mapping[str, str]) -> KernelEnvironment:
    """Return what the spawner wrote into these variables.

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
