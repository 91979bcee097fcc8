"""Packages sent with a job: adds them to a draft, and lists them for the user."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

from msgspec import structs

from benchpool.cells import Problem
from benchpool.delta.difference import EnvironmentDelta, notebook_entries
from benchpool.drafts import Draft
from benchpool_scheduler.contract import NotebookEntry, SnapshotFile
from benchpool_scheduler.phrases import count, is_are
from benchpool_scheduler.worker.records import WHEELS

SHOWN = 6


def joined(draft: Draft, delta: EnvironmentDelta) -> Draft:
    """Return the draft of a notebook's job with the packages that its image lacks."""
    submission, overlay = draft.submission, notebook_entries(delta)
    entry = submission.entry
    if not overlay or not isinstance(entry, NotebookEntry):
        return draft
    before = draft.contents[entry.notebook]
    notebook = json.loads(before if isinstance(before, bytes) else before.read_bytes())
    notebook["metadata"]["benchpool"] |= overlay
    text = json.dumps(notebook, indent=1).encode()
    sha256 = hashlib.sha256(text).hexdigest()
    wheels = {hashlib.sha256(data).hexdigest(): (name, data) for name, data in delta.wheels.items()}
    files = [
        SnapshotFile(f"{WHEELS}/{name}", sha, len(data)) for sha, (name, data) in wheels.items()
    ]
    contents = {sha: data for sha, data in draft.contents.items() if sha != entry.notebook}
    return replace(
        draft,
        submission=structs.replace(
            submission,
            entry=structs.replace(entry, notebook=sha256),
            files=[*submission.files, *files],
        ),
        contents={**contents, sha256: text, **{sha: data for sha, (_, data) in wheels.items()}},
    )


def problems_of(delta: EnvironmentDelta) -> list[Problem]:
    """Return the messages about these packages at submission.

    >>> from benchpool.delta.difference import LockedPackage
    >>> one = EnvironmentDelta((LockedPackage("numpy", "2.1.0", ()),), left={"own": "no tag"})
    >>> for each in problems_of(one):
    ...     print(each.text)
    1 package of this Python that the job image lacks is included: numpy 2.1.0
    `own` is not included: no tag
    """
    found = []
    names = delta.names
    if names:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        packages = count(len(names), "package")
        text = f"{packages} of this Python that the job image lacks {is_are(len(names))} included"
        found.append(Problem("info", f"{text}: {', '.join(names[:SHOWN])}{more}"))
    left = (
        Problem("warning", f"`{name}` is not included: {why}") for name, why in delta.left.items()
    )
    return [*found, *left]
