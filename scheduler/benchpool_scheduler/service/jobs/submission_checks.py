"""Checks of a submission before it is accepted; every refusal is a sentence with its number.

The checks read facts and touch no path. With system accounts a path belongs to the user, and only
the runtime opens it, as that user.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from benchpool_scheduler.contract import (
    CommandEntry,
    JobSubmission,
    ModuleEntry,
    NotebookEntry,
    PodsEntry,
    ScriptEntry,
)
from benchpool_scheduler.contract.path_limits import beyond
from benchpool_scheduler.errors import InvalidInput, TooLarge, TooMany
from benchpool_scheduler.phrases import count, data_size, duration, visible
from benchpool_scheduler.service.jobs.path_checks import check_paths
from benchpool_scheduler.worker import rendezvous
from benchpool_scheduler.worker.records import VALUES

FILES_BYTES = 10 * 1024**3
ENVIRONMENT_BYTES = 256 * 1024
_LINES = str.maketrans("", "", "\n\r\t")
RESERVED = rendezvous.NAMES | {
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "NVIDIA_VISIBLE_DEVICES",
}


# --------------------------------------------------------------------------- its shape


def check_shape(submission: JobSubmission) -> None:
    """Check a submission by itself. Errors: InvalidInput, TooLarge."""
    check_least(submission)
    if submission.name is not None:
        check_visible(submission.name, "name")
    for tag in submission.tags:
        check_visible(tag, "tags")
    _check_environment(submission.env)
    check_paths(submission)
    _check_files(submission)


def check_deadline(submission: JobSubmission, now: float) -> None:
    """Refuse a deadline that has passed. Errors: InvalidInput."""
    deadline = submission.deadline
    if deadline is not None and deadline.timestamp() <= now:
        raise InvalidInput(
            f"The deadline {deadline.isoformat(' ', 'minutes')} passed "
            f"{duration(now - deadline.timestamp())} ago: give a later one, or none.",
            field="deadline",
        )


def check_visible(text: str, what: str, field: str | None = None) -> None:
    """Refuse invisible or misleading characters in a text of ``field``, by default ``what``.

    Errors: InvalidInput.
    """
    if visible(text) != text:
        raise InvalidInput(
            f"{what} is {visible(text)[:200]!r}, with invisible or control characters. Remove "
            "them.",
            field=field or what,
        )


def check_least(submission: JobSubmission) -> None:
    """Refuse a ``min_workers`` above the number of workers. Errors: InvalidInput."""
    if submission.min_workers is not None and submission.min_workers > submission.workers:
        raise InvalidInput(
            f"min_workers is {submission.min_workers}, more than the "
            f"{count(submission.workers, 'worker')}; choose 1 to {submission.workers}.",
            field="min_workers",
            numbers={"min_workers": submission.min_workers, "workers": submission.workers},
        )


def _check_environment(env: dict[str, str]) -> None:
    for name, value in env.items():
        own = name.startswith("BENCHPOOL_") and not name.startswith("BENCHPOOL_ARRAY_")
        if own or name in RESERVED:
            raise InvalidInput(
                f"The variable {name} is set by benchpool itself; leave it out or name yours "
                "differently.",
                code="reserved-variable",
                field="env",
            )
        if "\0" in value:
            raise InvalidInput(f"The value of {name} has a zero byte in it.", field="env")
        # Certificates and scripts have several lines; other invisible characters are refused.
        check_visible(value.translate(_LINES), f"The value of {name}", field="env")
    size = sum(len(name) + len(value.encode(errors="replace")) for name, value in env.items())
    if size > ENVIRONMENT_BYTES:
        raise TooLarge(
            f"The variables have {size} bytes together; {ENVIRONMENT_BYTES} are allowed. "
            "Put large values into a file.",
            field="env",
            numbers={"bytes": size, "limit": ENVIRONMENT_BYTES},
        )


def _is_plain_relative(path: str) -> bool:
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") for part in parts)


def _check_files(submission: JobSubmission) -> None:
    paths: set[str] = set()
    for file in submission.files:
        if not _is_plain_relative(file.path):
            raise InvalidInput(
                f"The file path {file.path[:200]!r} is not allowed; paths are relative to the "
                "folder, without '.' and '..'.",
                field="files",
            )
        if file.path in paths:
            raise InvalidInput(f"The file {file.path[:200]!r} is listed twice.", field="files")
        wrong = beyond(file.path)
        if wrong is not None:
            raise InvalidInput(
                f"The file {file.path[:200]!r} {wrong}. Move or rename it, or leave it out with a "
                ".benchpoolignore file.",
                field="files",
            )
        paths.add(file.path)
    _check_folders(paths)
    total = sum(file.size for file in submission.files)
    if total > FILES_BYTES:
        raise TooLarge(
            f"The folder's {len(paths)} files have {total} bytes; {FILES_BYTES} are allowed. "
            "Leave data out with a .benchpoolignore file and name its place in --env.",
            field="files",
            numbers={"bytes": total, "limit": FILES_BYTES},
        )
    _check_script(submission, paths)


def _check_folders(paths: set[str]) -> None:
    """Refuse a path that is listed as a file and as the folder of another. Errors: InvalidInput."""
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder:
            if folder in paths:
                raise InvalidInput(
                    f"{folder[:200]!r} is listed as a file and as the folder of {path[:200]!r}. "
                    "Leave one of them out.",
                    field="files",
                )
            folder = folder.rpartition("/")[0]


def check_values(submission: JobSubmission, limit_gib: int) -> None:
    """Limit the bytes of notebook values sent with a job. Errors: TooLarge."""
    place = f"{VALUES}/"
    total = sum(file.size for file in submission.files if file.path.startswith(place))
    if total > limit_gib * 1024**3:
        raise TooLarge(
            f"The values sent with it have {data_size(total)}; {data_size(limit_gib * 1024**3)} "
            "are allowed. Send fewer, or let their cells run again in the job; an administrator "
            "can raise budgets.values_gib.",
            code="values-too-large",
            field="files",
            numbers={"bytes": total, "limit": limit_gib * 1024**3},
        )


def _check_script(submission: JobSubmission, paths: set[str]) -> None:
    entry = submission.entry
    if not isinstance(entry, ScriptEntry):
        return
    if not _is_plain_relative(entry.path):
        raise InvalidInput(
            f"The script {entry.path[:200]!r} must be named relative to the folder it runs in, "
            "without '..'.",
            field="entry",
        )
    if submission.working_dir is None and entry.path not in paths:
        raise InvalidInput(
            f"The script {entry.path[:200]!r} is not among the {len(paths)} files sent; start in "
            "its folder, or check that no ignore file leaves it out.",
            code="script-not-sent",
            field="entry",
            numbers={"files": len(paths)},
        )


def check_image(submission: JobSubmission, *, images: bool) -> None:
    """Refuse an image in a pool that runs jobs as processes. Errors: InvalidInput."""
    if submission.image is not None and not images:
        raise InvalidInput(
            f"The job asks for the image {submission.image}, but this pool runs jobs as processes "
            "of its machine; leave the image out.",
            code="no-images",
            field="image",
        )


# --------------------------------------------------------------------------- limits


def check_queue(user: str, waiting: int, limit: int) -> None:
    """Limit the unfinished jobs of a user. Errors: TooMany."""
    if waiting >= limit:
        raise TooMany(
            f"{user} has {waiting} jobs that have not ended; {limit} are allowed. "
            "Cancel some or wait until some have ended.",
            code="too-many-jobs",
            numbers={"jobs": waiting, "limit": limit},
        )


def check_bytes(user: str, alive: int, size: int, limit_mib: int) -> None:
    """Limit the bytes of submissions of unfinished jobs. Errors: TooMany, TooLarge."""
    if size > limit_mib * 1024**2:
        raise TooLarge(
            f"The submission has {size} bytes without its files; {limit_mib} MiB are allowed. Put "
            "values of variables and parameters into a file, or send fewer files; an administrator "
            "can raise budgets.submissions_mib.",
            numbers={"bytes": size, "limit": limit_mib * 1024**2},
        )
    if alive + size > limit_mib * 1024**2:
        raise TooMany(
            f"The submissions of {user} whose jobs have not ended have {alive} bytes, with this "
            f"one {alive + size}; {limit_mib} MiB are allowed. Cancel some or wait until some "
            "have ended.",
            code="too-many-submission-bytes",
            numbers={"bytes": alive + size, "limit": limit_mib * 1024**2},
        )


# --------------------------------------------------------------------------- objects, name


def objects_of(submission: JobSubmission) -> tuple[str, ...]:
    """Return the hashes of all objects that a submission needs, without duplicates."""
    hashes = dict.fromkeys(file.sha256 for file in submission.files)
    if isinstance(submission.entry, NotebookEntry):
        hashes[submission.entry.notebook] = None
    return tuple(hashes)


def check_objects(needed: tuple[str, ...], present: frozenset[str]) -> None:
    """Refuse a submission whose contents were not uploaded. Errors: InvalidInput."""
    missing = [sha256 for sha256 in needed if sha256 not in present]
    if missing:
        raise InvalidInput(
            f"{len(missing)} of {len(needed)} contents have not been uploaded by you, the first "
            f"is {missing[0][:12]}; upload them and submit again.",
            code="missing-objects",
            field="files",
            numbers={"missing": len(missing), "of": len(needed), "first": missing[0]},
        )


def name_of(submission: JobSubmission) -> str:
    """Return the job's name: the requested one, or one derived from its entry.

    >>> name_of(JobSubmission(entry=ScriptEntry("src/train.py")))
    'train'
    """
    if submission.name is not None:
        return submission.name.strip() or "job"
    match submission.entry:
        case ScriptEntry(path=path):
            found = PurePosixPath(path).stem
        case ModuleEntry(module=module):
            found = module.rpartition(".")[2]
        case NotebookEntry(name=name):
            found = PurePosixPath(name).stem
        case CommandEntry(argv=argv):
            found = PurePosixPath(argv[0]).name
        case PodsEntry(pods=pods):
            found = pods[0]
    return visible(found)[:100] or "job"
