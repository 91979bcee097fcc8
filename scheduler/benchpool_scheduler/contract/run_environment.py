"""Environment of a run, recorded in ``environment.json`` beside its results.

It holds no secrets: names of variables without values, and addresses without user and password.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

NAME = "environment.json"
MOST_BYTES = 4 << 20
"""Maximum size of the file, in bytes."""

Short = Annotated[str, Meta(max_length=1000)]


class Package(Struct, frozen=True, forbid_unknown_fields=True):
    """Installed distribution.

    ``source`` is its origin if it was not installed from an index (PEP 610): an address with its
    commit, or a folder.
    """

    name: Short
    version: Short
    source: Short | None = None


class KnownFile(Struct, frozen=True, forbid_unknown_fields=True):
    """File of the run; ``sha256`` is null if the file was too large to hash."""

    path: Annotated[str, Meta(max_length=4096)]
    bytes: Annotated[int, Meta(ge=0)]
    sha256: str | None


class Commit(Struct, frozen=True, forbid_unknown_fields=True):
    """Commit of the folder, and the difference of its tracked files.

    ``cut`` is whether the difference was truncated.
    """

    commit: Short
    branch: Short | None
    difference: str
    cut: bool = False


class Seed(Struct, frozen=True, forbid_unknown_fields=True):
    """Seed that the code sets, with the call and the value as written there."""

    cell: int
    call: Short
    value: Short


class RunEnvironment(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Environment of a run. Lists are bounded, and sorted where their order has no meaning.

    ``cuda`` is the version that PyTorch was built for, else that of the machine's toolkit.
    ``modules`` are the user's own modules that were sent with the job. ``data`` are the files that
    the code names. ``variables`` are the names of the environment variables.
    """

    version: Literal[1] = 1
    job: Short
    attempt: int
    python: Short
    platform: Short
    packages: Annotated[list[Package], Meta(max_length=5000)]
    driver: Short | None
    cuda: Short | None
    image: Short | None
    commit: Commit | None
    modules: Annotated[list[KnownFile], Meta(max_length=1000)]
    data: Annotated[list[KnownFile], Meta(max_length=100)]
    seeds: Annotated[list[Seed], Meta(max_length=100)]
    variables: Annotated[list[Short], Meta(max_length=1000)]
