"""What the workers of a gang read to meet (formats, section 7): pure."""

from __future__ import annotations

FOR_TORCHRUN = "PET_"
"""torchrun takes what its command line leaves open from variables with this beginning."""


def rendezvous(master: str, port: int, workers: int, index: int, processes: int) -> dict[str, str]:
    """Return what torchrun and others read; ``torchrun train.py`` is then the whole command.

    ``processes`` are those of one worker, one for each GPU. Rank, local rank and the number of all
    are told where each of several workers is one process. A process alone is not told that it is
    one of many, since libraries would wait for others; and a worker of several processes is told
    none of the three, since its own launcher (``torchrun``) tells each process all of them.

    >>> rendezvous("127.0.0.1", 29500, 2, 1, 1)["WORLD_SIZE"]
    '2'
    >>> [sorted({"RANK", "WORLD_SIZE"} & rendezvous("", 1, *of).keys())
    ...  for of in [(1, 0, 1), (2, 0, 4)]]
    [[], []]
    """
    found = {
        "MASTER_ADDR": master,
        "MASTER_PORT": str(port),
        "NNODES": str(workers),
        "NODE_RANK": str(index),
        "NPROC_PER_NODE": str(processes),
    }
    found.update({FOR_TORCHRUN + name: value for name, value in found.items()})
    if processes == 1 and workers > 1:
        found.update({"WORLD_SIZE": str(workers), "RANK": str(index), "LOCAL_RANK": "0"})
    return found


NAMES = frozenset(rendezvous("", 0, 2, 0, 1))
"""Every variable that may be set here; a submission sets none of them."""
