"""Backups of the volumes of a cluster, which its API server does not store; each volume by itself.

hub/2026-11-22T040000.125000Z-daily/    jupyterhub.sqlite pool/2026-11-22T040000.250000Z-daily/
objects/  audit/  past-jobs/  in-force.yaml  …

Contents never change, so a copy links those of the copy before, or of the volume itself where both
are on one file system. Other processes use the volumes meanwhile; a content that is removed during
the copy was not needed any more.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchpool_scheduler.phrases import count
from benchpool_scheduler.store import (
    access_requests,
    audit_copies,
    configuration_versions,
    copies,
    curve_files,
    hub_tokens,
    schedule_files,
    service_files,
    subscription_files,
    sweep_files,
)
from benchpool_scheduler.store.checking import fault_of

KIND = "daily"
HUB_DATABASE = "jupyterhub.sqlite"
IN_FORCE = "in-force.yaml"
"""Last valid settings, for a start while the settings objects are invalid."""
_CONTENT = re.compile(r"[0-9a-f]{64}")


class CannotCopy(Exception):
    """Failed copy or restore, as a sentence; nothing was changed."""


@dataclass(frozen=True, slots=True)
class VolumeCopies:
    """Folder of the copies of a volume, and how many are kept."""

    folder: Path
    kept: int = 7

    def newest(self) -> Path | None:
        """Return the newest copy, or None."""
        return copies.newest(self.folder, KIND)

    def named(self, name: str) -> Path:
        """Return a copy by its name, the newest for an empty name. Errors: CannotCopy."""
        found = self.folder / Path(name).name if name else self.newest()
        if found is None or not found.is_dir():
            there = sorted(it.name for it in self.folder.glob(f"*-{KIND}"))
            raise CannotCopy(
                f"There is no copy {name or 'yet'} in {self.folder}. Existing copies: "
                f"{', '.join(there) or 'none'}."
            )
        return found

    @contextlib.contextmanager
    def new(self) -> Iterator[Path]:
        """Yield a folder that becomes a copy when the block succeeds; then delete the oldest
        copies.
        """
        folder = self.folder / copies.folder_name(KIND)
        partial = folder.with_name(f".{folder.name}")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in self.folder.glob(f".*-{KIND}"):
            shutil.rmtree(left, ignore_errors=True)
        try:
            partial.mkdir(mode=0o700)
            yield partial
            os.sync()
            partial.rename(folder)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        copies.keep(self.folder, KIND, self.kept)


# ------------------------------------------------------------------ the Hub's volume


def copy_hub(volume: Path, to: VolumeCopies) -> list[str]:
    """Copy the Hub's database while it is in use; return a report. Errors: CannotCopy."""
    database = volume / HUB_DATABASE
    if not database.is_file():
        raise CannotCopy(f"{database} does not exist: the Hub has not created its database yet.")
    try:
        with to.new() as folder:
            copies.copy_file(database, folder / HUB_DATABASE)
    except (copies.CopyFailed, OSError) as failed:
        raise CannotCopy(f"{database} could not be copied into {to.folder}: {failed}.") from failed
    return [f"The Hub's database was copied into {to.newest()}."]


def restore_hub(volume: Path, copy: Path) -> list[str]:
    """Restore the Hub's database, which must not be in use; return a report. Errors: CannotCopy."""
    source, target = copy / HUB_DATABASE, volume / HUB_DATABASE
    fault = fault_of(source) if source.is_file() else "it does not exist"
    if fault is not None:
        raise CannotCopy(f"{source} cannot be used ({fault}). Nothing was changed.")
    now = time.time()
    tokens = hub_tokens.sentences(hub_tokens.read(target, now), hub_tokens.read(source, now))
    new = target.with_name(f".{target.name}.restored")
    shutil.copyfile(source, new)
    new.chmod(0o600)
    aside = target.with_name(f"{target.name}.{copies.folder_name('replaced')}")
    was = target.exists()
    for suffix in ("", "-wal", "-shm", "-journal"):
        old = Path(f"{target}{suffix}")
        if old.exists():
            old.replace(f"{aside}{suffix}")
    new.replace(target)
    return [
        f"{target} was restored" + (f"; the previous file is {aside}." if was else "."),
        *tokens,
    ]


# ------------------------------------------------------------------ the pool's volume


def copy_pool(volume: Path, to: VolumeCopies) -> list[str]:
    """Copy contents, audit trail and past jobs while they are in use; return a report.

    Errors: CannotCopy.
    """
    before, own = to.newest(), volume / "scheduler"
    try:
        with to.new() as folder:
            contents = _copy_contents(volume / "objects", folder / "objects", before)
            audit_copies.copy_into(
                own / "audit", folder / "audit", before / "audit" if before is not None else None
            )
            _copy_lines(own / "past-jobs", folder / "past-jobs")
            curve_files.copy_into(own / curve_files.FOLDER, folder / curve_files.FOLDER)
            sweep_files.copy_into(own / sweep_files.FOLDER, folder / sweep_files.FOLDER)
            schedules = schedule_files.FOLDER
            sweep_files.copy_into(own / schedules, folder / schedules)
            services = service_files.FOLDER
            sweep_files.copy_into(own / services, folder / services)
            versions = configuration_versions.FOLDER
            configuration_versions.copy_into(own / versions, folder / versions)
            access_requests.copy_into(own / access_requests.FILE, folder)
            subscription_files.copy_into(own, folder)
            if (own / IN_FORCE).is_file():
                shutil.copyfile(own / IN_FORCE, folder / IN_FORCE)
    except OSError as failed:
        raise CannotCopy(f"{volume} could not be copied into {to.folder}: {failed}.") from failed
    return [
        f"{count(contents, 'uploaded file')}, the audit trail and the past jobs were copied into "
        f"{to.newest()}."
    ]


def restore_pool(volume: Path, copy: Path) -> list[str]:
    """Restore missing files of the volume; existing files stay. Return a report.

    Errors: CannotCopy.
    """
    own = volume / "scheduler"
    try:
        contents = _restore_contents(copy / "objects", volume / "objects")
        trail = audit_copies.put_back(copy / "audit", own / "audit")
        past = _restore_missing(copy / "past-jobs", own / "past-jobs")
        curves = curve_files.put_back(copy / curve_files.FOLDER, own / curve_files.FOLDER)
        sweeps = sweep_files.put_back(copy / sweep_files.FOLDER, own / sweep_files.FOLDER)
        again = schedule_files.FOLDER
        schedules = sweep_files.put_back(copy / again, own / again)
        served = service_files.FOLDER
        services = sweep_files.put_back(copy / served, own / served)
        known = configuration_versions.FOLDER
        versions = configuration_versions.copy_into(copy / known, own / known)
        requests = access_requests.put_back(copy / access_requests.FILE, own / access_requests.FILE)
        subscriptions = subscription_files.put_back(copy, own)
        if (copy / IN_FORCE).is_file() and not (own / IN_FORCE).exists():
            _put_whole(copy / IN_FORCE, own / IN_FORCE)
    except OSError as failed:
        raise CannotCopy(f"{copy} could not be restored to {volume}: {failed}.") from failed
    return [
        f"Restored to {volume}: {count(contents, 'uploaded file')}, {count(trail.put, 'file')} of "
        f"the audit trail, {count(past, 'file')} of past jobs, curves of {count(curves, 'job')}, "
        f"{count(sweeps, 'sweep')}, {count(schedules, 'schedule')}, {count(services, 'service')}, "
        f"{count(versions, 'version')} of the configuration, {count(requests, 'access request')}, "
        f"notification settings of {count(subscriptions, 'user')}. Existing files stay.",
        *(
            [
                f"{count(trail.others, 'file')} of the copy's audit trail do not match the trail "
                f"in {own / 'audit'}, which stays. Keep the copy."
            ]
            if trail.others
            else []
        ),
    ]


def _copy_contents(source: Path, target: Path, before: Path | None) -> int:
    """Copy contents and their upload markers; return the number of contents."""
    copied = 0
    for file in _contents(source):
        name = file.relative_to(source)
        (target / name.parent).mkdir(parents=True, exist_ok=True, mode=0o700)
        earlier = before / "objects" / name if before is not None else None
        try:
            known = earlier is not None and audit_copies.same_size(earlier, file)
        except FileNotFoundError:
            known = False
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile, as no job needs it
            source_file = earlier if earlier is not None and known else file
            audit_copies.link_or_copy(source_file, target / name)
            copied += len(name.parts) == 2
    for marker in _markers(source):
        with contextlib.suppress(FileNotFoundError):
            _put_marker(marker, target / marker.relative_to(source))
    return copied


def _restore_contents(copy: Path, target: Path) -> int:
    put = 0
    for file in _contents(copy):
        place = target / file.relative_to(copy)
        if not place.exists():
            _put_whole(file, place)
            put += 1
    for marker in _markers(copy):
        place = target / marker.relative_to(copy)
        if not place.exists():
            _put_marker(marker, place)
    return put


def _contents(folder: Path) -> Iterator[Path]:
    """Yield complete contents; incomplete ones have longer names."""
    return (it for it in folder.glob("??/*") if _CONTENT.fullmatch(it.name))


def _markers(folder: Path) -> Iterator[Path]:
    return (it for it in folder.glob("by/*/*") if _CONTENT.fullmatch(it.name))


def _put_marker(marker: Path, place: Path) -> None:
    """Create an upload marker with the original upload time."""
    when = marker.stat().st_mtime
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    place.touch()
    os.utime(place, (when, when))


def _copy_lines(source: Path, target: Path) -> None:
    """Copy the complete lines of append-only files."""
    for file in sorted(source.glob("*.jsonl")):
        target.mkdir(exist_ok=True, mode=0o700)
        data = file.read_bytes()
        (target / file.name).write_bytes(data[: data.rfind(b"\n") + 1])


def _restore_missing(copy: Path, target: Path) -> int:
    put = 0
    for file in sorted(copy.glob("*.jsonl")):
        if not (target / file.name).exists():
            _put_whole(file, target / file.name)
            put += 1
    return put


def _put_whole(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    new = place.with_name(f".{place.name}.restored")
    shutil.copyfile(source, new)
    new.chmod(0o600)
    new.replace(place)
