"""Differences between the environments of two runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchpool_scheduler.changes.options import SHOWN
from benchpool_scheduler.contract.run_changes import RunChange
from benchpool_scheduler.contract.run_environment import KnownFile, Package, RunEnvironment
from benchpool_scheduler.phrases import visible

NOT_IN = "–"


def environment_changes(before: RunEnvironment, after: RunEnvironment) -> list[RunChange]:
    """Return the differences by area, empty for equal environments.

    Job, attempt and the folder of the run do not count: paths are relative to it.
    """
    return [
        *_single(before, after),
        *_named("package", _packages(before.packages), _packages(after.packages)),
        *_commit(before, after),
        *_named("module", _files(before.modules), _files(after.modules)),
        *_named("data", _files(before.data), _files(after.data)),
        *_named("seed", _seeds(before), _seeds(after)),
        *_named("variable", _variables(before), _variables(after)),
    ]


def _single(before: RunEnvironment, after: RunEnvironment) -> Iterator[RunChange]:
    for name in ("python", "platform", "driver", "cuda", "image"):
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield RunChange("environment", name, was, now)


def _commit(before: RunEnvironment, after: RunEnvironment) -> Iterator[RunChange]:
    was, now = before.commit, after.commit
    named = [None if one is None else one.commit[:SHOWN] for one in (was, now)]
    if named[0] != named[1]:
        yield RunChange("commit", "commit", named[0], named[1])
    texts = ["" if one is None else one.difference for one in (was, now)]
    if texts[0] != texts[1]:
        sizes = [f"{len(text.splitlines())} lines" if text else "none" for text in texts]
        yield RunChange("commit", "uncommitted changes", sizes[0], sizes[1])


def _named(area: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[RunChange]:
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was != now:
            yield RunChange(area, name, was, now)


def _packages(packages: Sequence[Package]) -> dict[str, str]:
    return {
        one.name.lower().replace("_", "-"): f"{one.version} from {one.source}"
        if one.source
        else one.version
        for one in packages
    }


def _files(files: Sequence[KnownFile]) -> dict[str, str]:
    """Return digests by path.

    >>> _files([KnownFile("x.py", 1, "0" * 64), KnownFile("large.bin", 1 << 30, None)])
    {'x.py': '000000000000', 'large.bin': '1073741824 bytes'}
    """
    return {
        visible(one.path): f"{one.bytes} bytes" if one.sha256 is None else one.sha256[:SHOWN]
        for one in files
    }


def _seeds(run: RunEnvironment) -> dict[str, str]:
    """Return seeds by call; repeated calls are numbered."""
    found: dict[str, str] = {}
    for one in run.seeds:
        times = sum(1 for name in found if name.partition(" #")[0] == one.call)
        found[one.call if not times else f"{one.call} #{times + 1}"] = one.value
    return found


def _variables(run: RunEnvironment) -> dict[str, str]:
    """Return the names of variables, except those that every run has of its own."""
    return dict.fromkeys((it for it in run.variables if not it.startswith("BENCHPOOL_")), "set")
