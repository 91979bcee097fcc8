"""``benchpool backup`` and ``benchpool restore``: a copy is exported, and restored.

A copy is a folder or a tar file. It has ``pool.sqlite``, ``jupyterhub.sqlite``, ``benchpool.yaml``,
the audit trail, the use by past jobs, the code of unfinished jobs, and the configuration's
versions. It also has access requests, notification subscriptions and the site's notification
settings. Replaced files stay beside the new ones under another name. Of the parts after
``benchpool.yaml`` only missing ones are restored.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

from benchpool_scheduler import configuration
from benchpool_scheduler.contract import BackupMade
from benchpool_scheduler.errors import InvalidInput, Unavailable
from benchpool_scheduler.phrases import count, is_are
from benchpool_scheduler.runtime.local import orphans
from benchpool_scheduler.store import (
    access_requests,
    audit_copies,
    configuration_versions,
    content_copies,
    copies,
    curve_files,
    hold,
    hub_tokens,
    past_jobs,
    schedule_files,
    service_files,
    subscription_files,
    sweep_files,
)
from benchpool_scheduler.store.checking import fault_of
from benchpool_scheduler.workstation import admin_token, copy_archive
from benchpool_scheduler.workstation import state as states
from benchpool_scheduler.workstation.state import StateFolder

HUB_DATABASE = "jupyterhub.sqlite"
CONFIGURATION = "benchpool.yaml"
FILES = ("pool.sqlite", HUB_DATABASE, CONFIGURATION)
DATABASES = FILES[:2]
MOST_NAMED = 20


def take(made: BackupMade, target: str) -> None:
    """Write a copy made by the service into a folder, or as a tar file to standard output.

    Errors: InvalidInput when the folder is not empty; Unavailable when it cannot be written.
    """
    source = Path(made.folder)
    try:
        if target == "-":
            with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
                for name in sorted(made.files):
                    tar.add(source / name, arcname=name, recursive=False)
            sys.stdout.buffer.flush()
            return
        folder = Path(target).expanduser()
        if folder.exists() and any(folder.iterdir()):
            raise InvalidInput(
                f"{folder} is not empty: name an empty folder, or a new one.", field="to"
            )
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in sorted(made.files):
            (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source / name, folder / name)
            (folder / name).chmod(0o600)
    except OSError as failed:
        raise Unavailable(
            f"The copy could not be written to {target} ({failed}). It stays in {source} until "
            "the next backup.",
            code="copy-failed",
        ) from failed


def restore(state: Path, copy: str) -> list[str]:
    """Restore a copy; return a sentence for each file, and about changed tokens.

    Errors: InvalidInput when it is incomplete, too large, of a newer release, or its configuration
    is invalid; Unavailable while benchpool runs.
    """
    folder = states.prepare(state)
    named = copy_archive.name_of(copy)
    with states.alone(folder), tempfile.TemporaryDirectory(dir=folder.path) as unpacked:
        source = _unpacked(copy, Path(unpacked))
        there = [name for name in FILES if (source / name).is_file()]
        if "pool.sqlite" not in there:
            raise InvalidInput(
                f"{named} has no pool.sqlite. Name a folder or a tar file that `benchpool backup` "
                "made, or one in the folder backups/ of the state folder.",
                field="copy",
            )
        _check(named, source, there)
        tokens = _token_changes(there, _place(folder)(HUB_DATABASE), source)
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        done = [_put(source / name, _place(folder)(name), stamp) for name in there]
        scheduler = folder.path / "scheduler"
        done += _put_trail(source / audit_copies.FOLDER, scheduler / audit_copies.FOLDER)
        done += _put_past(source / past_jobs.FOLDER, scheduler / past_jobs.FOLDER)
        done += _put_curves(source / curve_files.FOLDER, scheduler / curve_files.FOLDER)
        done += _put_sweeps(source / sweep_files.FOLDER, scheduler / sweep_files.FOLDER)
        schedules = schedule_files.FOLDER
        done += _put_schedules(source / schedules, scheduler / schedules)
        services = service_files.FOLDER
        done += _put_services(source / services, scheduler / services)
        versions = configuration_versions.FOLDER
        done += _put_versions(source / versions, scheduler / versions)
        done += _put_contents(source, folder.path)
        done += _put_access_requests(
            source / access_requests.FILE, scheduler / access_requests.FILE
        )
        done += _put_subscriptions(source, scheduler)
        done += _put_site(source, folder.path / subscription_files.SITE)
        return done + tokens + _orphans(folder.path)


def _orphans(state: Path) -> list[str]:
    """Return a sentence about running processes of jobs whose folders are gone."""
    found = orphans.find(state)
    if not found:
        return []
    named = ", ".join(f"{one.pid} (job {one.name or one.job})" for one in found[:MOST_NAMED])
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return [
        f"Still running, although the folders of their jobs are gone: {named}{more}. The next "
        "start ends those of jobs in the copy. End the others yourself, with kill and the number: "
        "they hold their GPUs."
    ]


def _place(folder: StateFolder) -> Callable[[str], Path]:
    places = {
        "pool.sqlite": folder.path / "scheduler" / "pool.sqlite",
        HUB_DATABASE: folder.hub / HUB_DATABASE,
        CONFIGURATION: folder.config,
    }
    return places.__getitem__


def _unpacked(copy: str, folder: Path) -> Path:
    """Return the folder of a copy; only the known files of a tar file are extracted."""
    path = Path(copy).expanduser()
    if copy != "-" and path.is_dir():
        return path
    copy_archive.unpack(copy, folder, _is_known)
    return folder


def _is_known(name: str) -> bool:
    grown = (
        audit_copies.NAME,
        past_jobs.NAME,
        configuration_versions.NAME,
        content_copies.NAME,
        curve_files.NAME,
        schedule_files.NAME,
        service_files.NAME,
        sweep_files.NAME,
    )
    notifications = (*subscription_files.FILES, subscription_files.SITE)
    whole = (*FILES, access_requests.FILE, *notifications)
    return name in whole or any(pattern.fullmatch(name) for pattern in grown)


def _check(copy: str, source: Path, there: list[str]) -> None:
    """Check the files of a copy before any file is replaced. Errors: InvalidInput."""
    for name in DATABASES:
        fault = fault_of(source / name) if name in there else None
        if fault is not None:
            raise InvalidInput(
                f"{name} of {copy} is damaged ({fault}). Nothing was changed. Name another copy.",
                field="copy",
            )
    version = copies.version_of(source / "pool.sqlite")
    if not copies.is_known(version):
        raise InvalidInput(
            f"pool.sqlite of {copy} has version {version}, which this release of benchpool does "
            "not support. Nothing was changed. Install the release that made it, or name another "
            "copy.",
            field="copy",
            numbers={"version": version},
        )
    if CONFIGURATION in there:
        _check_configuration(f"{CONFIGURATION} of {copy}", source / CONFIGURATION)


def _check_configuration(named: str, file: Path) -> None:
    try:
        configuration.load(file.read_text(encoding="utf-8"), named)
    except OSError as failed:
        raise _unfit_configuration(f"{named} cannot be read ({failed.strerror}).") from failed
    except UnicodeDecodeError as wrong:
        raise _unfit_configuration(f"{named} is not UTF-8 text.") from wrong
    except InvalidInput as wrong:
        raise _unfit_configuration(wrong.message) from wrong


def _unfit_configuration(why: str) -> InvalidInput:
    return InvalidInput(
        f"{why} Nothing was changed. Correct that file in the copy, or remove it there to keep "
        "the configuration of the state folder. Unpack a tar file first, and name the folder.",
        code="configuration",
        field="copy",
    )


def _token_changes(there: Collection[str], replaced: Path, source: Path) -> list[str]:
    """Return changes of tokens, users and administrators; call it before the replacement."""
    if HUB_DATABASE not in there:
        return []
    now = time.time()
    before, after = hub_tokens.read(replaced, now), hub_tokens.read(source / HUB_DATABASE, now)
    found = hub_tokens.sentences(before, after)
    if any(one.note == admin_token.NOTE for one in hub_tokens.again_valid(before, after)):
        found.append(
            "Administrator tokens of `benchpool up` are among the tokens that are valid again. "
            "`benchpool token rotate` revokes them after the next start."
        )
    return found


def _put(source: Path, target: Path, stamp: str) -> str:
    """Replace a file atomically; the old one stays beside it."""
    new = target.with_name(f".{target.name}.restored")
    shutil.copyfile(source, new)
    new.chmod(0o600)
    aside = target.with_name(f"{target.name}.before-{stamp}")
    was = target.exists()
    for suffix in ("", "-wal", "-shm"):
        old = Path(f"{target}{suffix}")
        if old.exists():
            old.rename(f"{aside}{suffix}")
    new.replace(target)
    if target.name == "pool.sqlite":
        hold.release(target)
    return f"{target} was restored" + (f"; the previous file is {aside}." if was else ".")


def _put_trail(copy: Path, trail: Path) -> list[str]:
    """Restore missing audit records; report the result if the copy has any."""
    found = audit_copies.put_back(copy, trail)
    lines: list[str] = []
    if found.put:
        lines.append(f"{count(found.put, 'file')} of the audit trail restored to {trail}.")
    elif found.left and not found.others:
        lines.append(
            f"The audit trail in {trail} already contains all records of the copy, and stays."
        )
    if found.others:
        lines.append(
            f"{count(found.others, 'file')} of the copy's audit trail {is_are(found.others)} not "
            f"the beginning of the trail in {trail}, which stays. Keep the copy."
        )
    return lines


def _put_past(copy: Path, past: Path) -> list[str]:
    """Restore missing use by past jobs; report the result if the copy has any."""
    if not copy.is_dir():
        return []
    added = past_jobs.put_back(copy, past)
    return [
        f"The use of {count(added, 'past job')} restored to {past}."
        if added
        else f"The use of past jobs is already recorded in {past}, and stays."
    ]


def _put_curves(copy: Path, curves: Path) -> list[str]:
    """Restore missing curves of jobs and report it."""
    put = curve_files.put_back(copy, curves)
    return [f"Curves of {count(put, 'job')} restored to {curves}."] if put else []


def _put_schedules(copy: Path, schedules: Path) -> list[str]:
    """Restore missing schedules and report it."""
    put = sweep_files.put_back(copy, schedules)
    return [f"{count(put, 'schedule')} restored to {schedules}."] if put else []


def _put_services(copy: Path, services: Path) -> list[str]:
    """Restore missing services and report it."""
    put = sweep_files.put_back(copy, services)
    return [f"{count(put, 'service')} restored to {services}."] if put else []


def _put_sweeps(copy: Path, sweeps: Path) -> list[str]:
    """Restore missing sweeps and report it."""
    put = sweep_files.put_back(copy, sweeps)
    return [f"{count(put, 'sweep')} restored to {sweeps}."] if put else []


def _put_contents(copy: Path, state: Path) -> list[str]:
    """Restore missing code of jobs and report it."""
    objects = state / content_copies.FOLDER
    found = content_copies.put_back(copy / content_copies.FOLDER, objects)
    lines = [f"{count(found.put, 'uploaded file')} of jobs restored to {objects}."]
    if found.damaged:
        lines.append(
            f"{count(found.damaged, 'uploaded file')} of the copy {is_are(found.damaged)} damaged "
            "and left out. Jobs that need a missing file fail with an error."
        )
    return lines if found.put or found.damaged else []


def summary(files: Collection[str]) -> str:
    """Return the contents of a copy in words: each file, and the number of jobs' contents.

    >>> summary(["pool.sqlite", f"objects/aa/{64 * 'a'}"])
    'pool.sqlite, 1 uploaded file of jobs'
    """
    names = sorted(name for name in files if not content_copies.NAME.fullmatch(name))
    contents = len(files) - len(names)
    more = [f"{count(contents, 'uploaded file')} of jobs"] if contents else []
    return ", ".join([*names, *more])


def _put_versions(copy: Path, versions: Path) -> list[str]:
    """Restore missing versions of the configuration and report it."""
    put = configuration_versions.copy_into(copy, versions)
    line = f"{count(put, 'version')} of the configuration restored to {versions}."
    return [line] if put else []


def _put_access_requests(copy: Path, file: Path) -> list[str]:
    """Restore missing access requests and report it."""
    put = access_requests.put_back(copy, file)
    line = f"{count(put, 'request')} to join a project restored to {file}."
    return [line] if put else []


def _put_subscriptions(copy: Path, folder: Path) -> list[str]:
    """Restore notification subscriptions of users without any, and report it."""
    put = subscription_files.put_back(copy, folder)
    line = f"Notification settings of {count(put, 'user')} restored to {folder}."
    return [line] if put else []


def _put_site(copy: Path, file: Path) -> list[str]:
    """Restore the site's notification settings if they are missing, and report it."""
    put = subscription_files.put_site_back(copy, file)
    return [f"{file} was restored."] if put else []
