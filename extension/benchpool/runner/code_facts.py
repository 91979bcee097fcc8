"""Facts of a run from the text of its cells: the seeds that it sets and the files that it names."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from benchpool.cells import magics
from benchpool_scheduler.client.exclusions import SECRETS
from benchpool_scheduler.client.patterns import Patterns
from benchpool_scheduler.contract.run_environment import KnownFile, Seed

SEEDS = frozenset(
    {
        *("seed", "manual_seed", "manual_seed_all", "set_seed", "set_random_seed"),
        *("seed_everything", "default_rng", "RandomState", "SeedSequence", "PRNGKey", "key"),
    }
)
"""Last words of the calls that set a seed; ``key`` is ``jax.random.key``."""

MOST_SEEDS, MOST_DATA = 100, 100
HASHED_BYTES = 64 << 20
"""Maximum size of a file that is hashed, in bytes; of a larger file only the size is recorded."""

_SECRETS = Patterns("\n".join(SECRETS).encode())


def seeds_of(cells: Iterable[tuple[int, str]]) -> list[Seed]:
    """Return the seeds that cells set, with the cell numbers, in order.

    >>> seeds_of([(3, "torch.manual_seed(0); rng = np.random.default_rng(SEED + 1)")])
    ... # doctest: +NORMALIZE_WHITESPACE
    [Seed(cell=3, call='torch.manual_seed', value='0'),
     Seed(cell=3, call='np.random.default_rng', value='SEED + 1')]
    """
    return [seed for number, text in cells for seed in _seeds(number, text)][:MOST_SEEDS]


def _seeds(number: int, text: str) -> Iterator[Seed]:
    for node in ast.walk(magics.read(text).tree or ast.Module([], [])):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        call = ast.unparse(node.func)
        last = call.rpartition(".")[2]
        if last in SEEDS and (last != "key" or "random" in call):
            yield Seed(number, call[:1000], ast.unparse(node.args[0])[:200])


def data_of(texts: Iterable[str], folder: Path) -> list[KnownFile]:
    """Return the files that code names by literal paths, with their digests. Reads the files."""
    names = dict.fromkeys(name for text in texts for name in _literals(text))
    found = (known(folder / name, name) for name in names)
    return sorted((each for each in found if each is not None), key=lambda it: it.path)[:MOST_DATA]


def _literals(text: str) -> Iterator[str]:
    for node in ast.walk(magics.read(text).tree or ast.Module([], [])):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value
            if 0 < len(name) < 1000 and "\0" not in name and "\n" not in name:
                yield name


def known(file: Path, name: str) -> KnownFile | None:
    """Return a regular file with its digest; None for other files, or if it may hold a secret."""
    if _SECRETS.decide(file.name.encode(), folder=False):
        return None
    try:
        if not file.is_file():
            return None
        size = file.stat().st_size
        with file.open("rb") as content:
            small = size <= HASHED_BYTES
            sha256 = hashlib.file_digest(content, "sha256").hexdigest() if small else None
    except (OSError, ValueError):
        return None
    return KnownFile(name, size, sha256)
