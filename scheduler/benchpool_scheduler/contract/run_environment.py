"""What a run had around it: ``environment.json`` beside its results.

Nothing secret is in it: of variables the names alone, of addresses no user and no password.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

NAME = "environment.json"
MOST_BYTES = 4 << 20
"""Of the file."""

Short = Annotated[str, Meta(max_length=1000)]


class Package(Struct, frozen=True, forbid_unknown_fields=True):
    """An installed distribution; ``source`` is where it came from when that was no index (PEP 610):
    an address with its commit, or a folder.
    """

    name: Short
    version: Short
    source: Short | None = None


class KnownFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file that the run had; ``sha256`` is null for one that was too large to read for this."""

    path: Annotated[str, Meta(max_length=4096)]
    bytes: Annotated[int, Meta(ge=0)]
    sha256: str | None


class Commit(Struct, frozen=True, forbid_unknown_fields=True):
    """The commit of the folder, and how the files that git knows differed from it.

    ``cut`` says that the difference goes on.
    """

    commit: Short
    branch: Short | None
    difference: str
    cut: bool = False


class Seed(Struct, frozen=True, forbid_unknown_fields=True):
    """A seed that the code sets: by which call, and to what, as it is written there."""

    cell: int
    call: Short
    value: Short


class RunEnvironment(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of it. Lists are bounded, and sorted where their order says nothing.

    ``cuda`` is what PyTorch was built for, else the toolkit of the machine. ``modules`` are the
    user's own that went with the job, ``data`` the files that the code names, ``variables`` the
    names of what the job was given and found.
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
