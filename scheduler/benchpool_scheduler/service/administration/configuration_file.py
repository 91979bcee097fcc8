"""``benchpool.yaml`` as a file; edits made by hand are never overwritten."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from benchpool_scheduler.errors import InvalidInput, Refused, Unavailable


def read(file: Path) -> str:
    """Return the text of the file. Errors: InvalidInput."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read ({error}).", code="configuration") from None


def refuse_edited(file: Path, *known: str) -> None:
    """Refuse to overwrite edits made by hand. Errors: Refused.

    Args:
        known: Texts that may be overwritten. A missing file may be written, too.
    """
    if _edited(file, known):
        raise Refused(
            f"{file} was changed by hand and is not in force, so it is not overwritten. "
            f"Apply it with `benchpool config apply {file}`, or go back with "
            "`benchpool config revert`.",
            code="configuration-file-changed",
        )


def replace(file: Path, text: str, *known: str) -> None:
    """Replace the file atomically by ``text``, unless it was edited by hand.

    The file keeps its mode; a new file has mode 0600. A file that contains the text already is not
    touched.

    Errors: Refused if the file contains neither ``text`` nor a known text; Unavailable.
    """
    refuse_edited(file, text, *known)
    temporary = file.with_name(f".{file.name}.new")
    try:
        if file.exists() and not _edited(file, (text,)):
            return
        mode = stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o600
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        refuse_edited(file, text, *known)  # it may have been edited during the slow write
        temporary.rename(file)
    except Refused:
        temporary.unlink(missing_ok=True)
        raise
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise _unwritten(file, error) from None


def keep_edit(file: Path, *known: str) -> tuple[Path, str] | None:
    """Save a text edited by hand under a name of its own; return the new path and the text.

    Return None if the file contains a known text. Errors: InvalidInput if it is unreadable,
    Unavailable.
    """
    if not _edited(file, known):
        return None
    text = read(file)
    try:
        for number in itertools.count(1):
            kept = file.with_name(f"{file.name}.by-hand-{number}")
            if os.path.lexists(kept):
                continue
            replace(kept, text)
            kept.chmod(stat.S_IMODE(file.stat().st_mode))
            return kept, text
    except OSError as error:
        raise _unwritten(file, error) from None
    raise AssertionError("some number is free")


def _edited(file: Path, known: Sequence[str]) -> bool:
    try:
        return file.read_bytes() not in [text.encode() for text in known]
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _unwritten(file: Path, error: OSError) -> Unavailable:
    return Unavailable(
        f"{file} cannot be written ({error.strerror}). Nothing was changed.",
        code="configuration-file",
    )
