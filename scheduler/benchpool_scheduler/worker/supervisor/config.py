"""Configuration of a supervisor at its start: one JSON object, read once."""

from __future__ import annotations

import json
import time

from ..log_files import BOUND
from .cgroups import Bounds


class SupervisorConfig:
    """The worker to supervise; the attributes are those of the runtime port's ``Launch``.

    Attributes:
        cwd: Folder to run in; None runs in a copy of ``files``, written from ``objects``.
        folders: Further folders that the worker may write to; created if missing.
        output: The folder whose content is copied to ``output_dir`` at the end.
        carried: File for packed results that cannot be copied to ``output_dir``, or None.
        tag: The variable, ``NAME=value``, that marks every process of the worker.
        name: Beginning of the name of its cgroup.
        bounds: Its resource limits. ``private``: it has a private ``/tmp``, if the kernel supports
            that. ``privileges``: a program may gain more rights than its account has (setuid).
    """

    __slots__ = (
        "account",
        "argv",
        "bounds",
        "carried",
        "cwd",
        "env",
        "files",
        "folders",
        "grace_s",
        "log_bytes",
        "name",
        "objects",
        "output",
        "output_dir",
        "private",
        "privileges",
        "tag",
        "time_limit_s",
    )

    def __init__(self, text: bytes) -> None:
        fields = json.loads(text)
        self.argv: list[str] = list(fields["argv"])
        self.env: dict[str, str] = dict(fields["env"])
        self.cwd: str | None = fields["cwd"]
        self.files: list[tuple[str, str, bool]] = [tuple(file) for file in fields["files"]]
        self.objects: str = fields["objects"]
        self.folders: list[str] = list(fields["folders"])
        self.output: str = fields["output"]
        self.output_dir: str | None = fields["output_dir"]
        self.carried: str | None = fields.get("carried")
        self.account: str | None = fields["account"]
        self.grace_s = float(fields["grace_s"])
        limit = fields["time_limit_s"]
        self.time_limit_s: float | None = None if limit is None else float(limit)
        self.log_bytes = int(fields.get("log_bytes", BOUND))
        self.tag: str = fields["tag"]
        self.name: str = fields["name"]
        self.bounds = _bounds(fields.get("bounds") or {})
        self.private = bool(fields.get("private", False))
        self.privileges = bool(fields.get("privileges", True))


def _bounds(fields: dict[str, object]) -> Bounds:
    memory, cpus, processes = (fields.get(name) for name in ("memory", "cpus", "processes"))
    devices = fields.get("devices")
    return Bounds(
        memory if isinstance(memory, int) else None,
        cpus if isinstance(cpus, int | float) else None,
        processes if isinstance(processes, int) else None,
        [(major, minor) for major, minor in devices] if isinstance(devices, list) else (),
    )


class StopRequest:
    """The content of ``stop.json``; a damaged one is a plain cancel without grace period."""

    __slots__ = ("for_", "grace_s", "kind", "text")

    def __init__(self, kind: str, grace_s: float, for_: str, text: str) -> None:
        self.kind = kind
        self.grace_s = grace_s
        self.for_ = for_
        self.text = text

    def as_notice(self, now: float) -> dict[str, object]:
        """Return the contents of the worker's notice file (formats, section 7).

        >>> StopRequest("pause", 30.0, "joe", "").as_notice(0.5)["deadline"]
        '1970-01-01T00:00:30.500+00:00'
        """
        at = now + self.grace_s
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
        return {
            "kind": self.kind,
            "deadline": f"{whole}.{int(at % 1 * 1000):03d}+00:00",
            "for": self.for_,
            "text": self.text,
        }

    @classmethod
    def of(cls, record: dict[str, object]) -> StopRequest:
        """Return the request in a record."""
        grace = record.get("grace_s")
        return cls(
            "pause" if record.get("kind") == "pause" else "cancel",
            float(grace) if isinstance(grace, int | float) else 0.0,
            str(record.get("for", "")),
            str(record.get("text", "")),
        )
