"""Variables by which the workers of a gang connect (formats, section 7): pure."""

from __future__ import annotations

FOR_TORCHRUN = "PET_"
"""Prefix of variables that torchrun reads for options missing on its command line."""


def rendezvous(master: str, port: int, workers: int, index: int, processes: int) -> dict[str, str]:
    """Return the variables for torchrun and others; ``torchrun train.py`` is then enough.

    ``processes`` is the number of processes of one worker, one for each GPU. Rank, local rank and
    world size are set only for several workers with one process each. A single process gets none of
    them, because libraries would wait for other processes. A worker with several processes gets
    none of them either, because its launcher (``torchrun``) sets them for each process.

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
"""Every variable that may be set here; a submission may set none of them."""
