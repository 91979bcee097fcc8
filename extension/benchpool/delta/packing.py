"""Wheels made from installed distributions: their importable files, as installed."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

LEFT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Metadata files that an installer writes, left out of the wheel."""

MOST_BYTES = 1 << 30
"""Limit for the files of a distribution, in bytes: they are held in memory."""

EPOCH = (1980, 1, 1, 0, 0, 0)


class CannotBePacked(Exception):
    """The distribution cannot be packed or locked; the text is the reason."""


def repacked(metadata: Path) -> tuple[str, bytes]:
    """Return the name and content of a wheel with the files of an installed distribution.

    Equal installations result in equal bytes. Programs in ``bin`` are left out.

    Args:
        metadata: Its ``dist-info`` folder.

    Raises:
        CannotBePacked: It has no list of files, a file is missing, or the files are too large.
    """
    try:
        files = dict(_files(metadata))
        tag = _tag((metadata / "WHEEL").read_text("utf-8"))
    except OSError as gone:
        raise CannotBePacked(f"{gone.filename} does not exist") from gone
    stem = metadata.name.removesuffix(".dist-info")
    record = f"{metadata.name}/RECORD"
    rows = [(path, f"sha256={_digest(data)}", len(data)) for path, data in files.items()]
    listed = io.StringIO()
    csv.writer(listed, lineterminator="\n").writerows([*rows, (record, "", "")])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in [*files.items(), (record, listed.getvalue().encode())]:
            wheel.writestr(zipfile.ZipInfo(path, EPOCH), data, zipfile.ZIP_DEFLATED)
    return f"{stem}-{tag}.whl", packed.getvalue()


def _files(metadata: Path) -> Iterator[tuple[str, bytes]]:
    total = 0
    for row in sorted(csv.reader((metadata / "RECORD").read_text("utf-8").splitlines())):
        path = PurePosixPath(row[0])
        ours = path.parts[0] == metadata.name and path.name in LEFT
        if path.is_absolute() or ".." in path.parts or path.suffix == ".pyc" or ours:
            continue
        data = (metadata.parent / path).read_bytes()
        total += len(data)
        if total > MOST_BYTES:
            raise CannotBePacked(f"its files exceed {MOST_BYTES >> 30} GiB")
        yield str(path), data


def _tag(wheel: str) -> str:
    """Return one tag from a wheel's description, preferably a Python 3 tag.

    >>> _tag("Wheel-Version: 1.0\\nTag: py2-none-any\\nTag: py3-none-any\\n")
    'py3-none-any'
    """
    found: list[str] = re.findall(r"^Tag: (\S+)$", wheel, re.MULTILINE)
    if not found:
        raise CannotBePacked("its WHEEL file has no tag")
    return next((each for each in found if not each.startswith("py2")), found[0])


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
