"""What the workers of a gang read to meet (formats, section 7): pure."""

from __future__ import annotations

FOR_TORCHRUN = "PET_"
"""torchrun takes what its command line leaves open from variables with this beginning."""


def rendezvous(master: str, port: int, workers: int, index: int, processes: int) -> dict[str, str]:
    """Return what torchrun and others read; ``torchrun train.py`` is then the whole command.

    ``processes`` are those of one worker, one for each GPU; ``WORLD_SIZE`` counts all of them. Rank
    and local rank are known only when a worker is one process; else its own launcher (``torchrun``)
    gives them to its processes.

    >>> rendezvous("127.0.0.1", 29500, 2, 1, 4)["WORLD_SIZE"]
    '8'
    """
    found = {
        "MASTER_ADDR": master,
        "MASTER_PORT": str(port),
        "NNODES": str(workers),
        "NODE_RANK": str(index),
        "NPROC_PER_NODE": str(processes),
    }
    found.update({FOR_TORCHRUN + name: value for name, value in found.items()})
    found["WORLD_SIZE"] = str(workers * processes)
    if processes == 1:
        found["RANK"] = str(index)
        found["LOCAL_RANK"] = "0"
    return found


NAMES = frozenset(rendezvous("", 0, 1, 0, 1))
"""Every variable that may be set here; a submission sets none of them."""
