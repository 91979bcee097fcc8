"""Runtime port: start, stop and observe workers, and read their logs.

The package ``local`` runs workers as processes of this machine, ``kubernetes`` as pods. A runtime
carries out decisions and makes none. All calls are idempotent by (job, attempt, worker), so that
they can be repeated after a restart.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.contract.stacks import WorkerStacks
from benchpool_scheduler.runtime.devices import Device as Device
from benchpool_scheduler.runtime.devices import DeviceState as DeviceState
from benchpool_scheduler.worker.folders import Part as Part  # kinds of files
from benchpool_scheduler.worker.metric_lines import ReportedValue as ReportedValue
from benchpool_scheduler.worker.tracker_runs import ReportedRun as ReportedRun
from benchpool_scheduler.worker.worker_id import WorkerId as WorkerId  # for callers


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """A file to write into the working folder: relative path, content hash, executable or not."""

    path: str
    sha256: str
    executable: bool = False


SandboxLevel = Literal["auto", "full", "off"]
"""Isolation of the workers of one machine from each other (``runtime.local.sandbox``)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that a worker needs; it inherits nothing else from the service's environment.

    Attributes:
        argv: The command; the first word is an absolute path or looked up in ``env["PATH"]``.
        env: The whole environment except what the runtime itself adds (formats, section 7).
        gpus: UUIDs for ``CUDA_VISIBLE_DEVICES``.
        working_dir: Absolute folder to run in; None runs in a fresh copy of ``files``.
        files: Snapshot to write when ``working_dir`` is None; contents come from the objects.
        output_dir: Absolute folder of the submitter into which results are copied at the end.
        account: System account to run as; None keeps the account of the service.
        grace_s: Seconds between notice and kill. ``time_limit_s``: run time limit, in seconds.
        nodes: Node name of each worker of the gang, by index; ``port``: its rendezvous port.
        image: Container image; None uses the site's default. Only for workers in containers.
        cpus: Processor cores of the worker, ``memory_gib`` its memory; 0 for no limit.
        objects: Hashes of contents that ``argv`` names besides ``files``.
        serves: Port for requests that the scheduler forwards to the worker, or None.
        origin: Description of the job, stored with the attempt's records for a service that does
            not know the job. Opaque to the runtime.
        admitted: Its pod exists already, created outside benchpool. It is admitted, not created.
        claim: Volume claim that is mounted at ``claim_path``, the submitter's home.
    """

    worker: WorkerId
    argv: tuple[str, ...]
    env: Mapping[str, str]
    gpus: tuple[str, ...]
    working_dir: Path | None
    files: tuple[SnapshotEntry, ...] = ()
    output_dir: Path | None = None
    account: str | None = None
    grace_s: float = 30.0
    time_limit_s: float | None = None
    nodes: tuple[str, ...] = ("localhost",)
    port: int = 29500
    image: str | None = None
    cpus: float = 0.0
    memory_gib: float = 0.0
    objects: tuple[str, ...] = ()
    claim: str | None = None
    claim_path: str = ""
    serves: int | None = None
    origin: bytes = b""
    admitted: bool = False


@dataclass(frozen=True, slots=True)
class Notice:
    """Contents of the worker's ``BENCHPOOL_NOTICE_FILE`` (formats, section 7)."""

    kind: Literal["pause", "cancel"]
    grace_s: float
    for_: str
    text: str


@dataclass(frozen=True, slots=True)
class UnexpectedWorker:
    """A running worker that the service did not expect.

    Attributes:
        since: Start time of its command. ``origin``: the description stored at its start, or empty.
        variables: Environment of its process, where it is readable; ``argv`` its command, and
            ``working_dir`` its working folder.
    """

    worker: WorkerId
    since: float | None
    origin: bytes
    variables: Mapping[str, str]
    argv: tuple[str, ...] = ()
    working_dir: str = ""


class EndedBy(StrEnum):
    """Why a worker ended, as far as the runtime knows."""

    ITSELF = "itself"
    NOTICE = "notice"  # ended after a notice, within the grace period or killed at its end
    TIME_LIMIT = "time-limit"
    OUT_OF_MEMORY = "out-of-memory"
    COULD_NOT_START = "could-not-start"
    NOT_TAKEN = "not-taken"  # its node rejected it; nothing ran, and other nodes may accept it
    MACHINE_FAULT = "machine-fault"  # the machine failed or lacked a resource; nothing ran
    NO_ROOM = "no-room"  # a quota or limit of the namespace rejected it; nothing ran
    LOST = "lost"  # its machine was restarted, or its supervisor was killed


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """Event: the worker's process runs. ``at`` is in seconds since the epoch."""

    worker: WorkerId
    at: float


@dataclass(frozen=True, slots=True)
class WorkerEnded:
    """Event: the worker and all processes that it started have ended, and its GPUs are free.

    ``exit_code`` follows the shell: 128 + n after signal n; None when unknown. ``text`` is a
    sentence for the user, where the end needs one. ``fault`` is the ``errno`` of a machine fault,
    if known. ``cause`` is a word of ``contract.causes`` that refines the exit code of a failure.
    ``traceback`` is a fingerprint: equal tracebacks have equal fingerprints.
    """

    worker: WorkerId
    at: float
    exit_code: int | None
    by: EndedBy
    text: str | None = None
    fault: int | None = None
    cause: EndCause | None = None
    traceback: str | None = None


@dataclass(frozen=True, slots=True)
class WorkerProgress:
    """Event: the worker wrote its progress file, began a run in a tracker, or saved."""

    worker: WorkerId
    at: float
    fraction: float | None
    text: str | None
    metrics: Mapping[str, float] = field(default_factory=dict)
    checkpoint_at: float | None = None
    checkpoint_step: int | None = None
    runs: tuple[ReportedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Event: the worker reported values, oldest first, with the times of its own clock."""

    worker: WorkerId
    at: float
    values: tuple[ReportedValue, ...]


WorkerEvent = WorkerStarted | WorkerEnded | WorkerProgress | WorkerMetrics


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """State of a machine, independent of its users.

    Attributes:
        labels: Labels of the machine, by name.
        taints: Key, value and effect of each taint.
        cpus: Processor cores available to benchpool's workers together: what the machine offers
            less the requests of other pods; None for no limit. ``memory_gib`` likewise.
        ready: Whether a worker may be started there; ``note`` gives the reason if not. GPUs of a
            machine that is not ready are not lost: jobs wait for them.
        gpus: UUIDs of the GPUs that ``links`` and ``sockets`` describe, in the same order.
        links: Closeness of each pair of GPUs; larger is closer. Empty if unknown (R12).
        sockets: CPU socket of each GPU. Empty if unknown.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[tuple[str, str, str], ...] = ()
    cpus: float | None = None
    memory_gib: float | None = None
    ready: bool = True
    note: str | None = None
    gpus: tuple[str, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    sockets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Pinned:
    """An image with its digest; without a known digest, the image as named and ``why``."""

    image: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a log from ``offset``; ``ended`` when the log is complete.

    ``skipped`` counts the bytes just before ``offset`` that the size limit dropped.
    """

    offset: int
    data: bytes
    ended: bool
    skipped: int = 0

    @property
    def next_offset(self) -> int:
        """Offset of the next chunk."""
        return self.offset + len(self.data)


class Runtime(Protocol):
    """Place where workers run."""

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers that an earlier service started.

        Afterwards ``events`` reports the state of each expected worker: started, ended (with the
        exit code that its supervisor recorded), or lost. An unexpected worker is stopped, or kept
        running if the runtime implements ``UnexpectedWorkers``.
        """

    async def close(self) -> None:
        """Release all resources; workers continue to run."""

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now; cached for at most a few seconds.

        Returns the same tuple object while nothing has changed, so callers can compare by identity.
        """

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the machines as they are now, cached like ``devices``.

        A machine with GPUs that is missing here is known only by its GPUs.
        """

    def denied_devices(self, gpus: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return the device files that a process of this machine with these GPUs must not open.

        Each is a pair of major and minor number. Empty where the machines isolate pods themselves.
        """

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return the nodes that can use a volume claim; None for all nodes or not known yet."""

    async def start(self, launch: Launch) -> None:
        """Start a worker; the outcome is reported as an event. Repeating the call has no effect."""

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Send the notice and SIGTERM, and after the grace period SIGKILL to all its processes.

        Raises any error that prevents delivery; the caller repeats the call until the worker ends.
        """

    def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield the events of all workers, in order; one consumer."""

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset``; empty when there are none yet."""

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the first offset written at ``since`` (seconds since the epoch) or later.

        None returns the current end of the log.
        """

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Wait until there are bytes after ``offset`` or the log ended; return False on timeout."""

    async def forget(self, job: str) -> None:
        """Delete all files of an ended job."""

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Delete one kind of files of ended jobs, where they still exist; keep the others."""


@runtime_checkable
class Stacks(Protocol):
    """Runtime that can inspect running workers."""

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        """Return the stacks of a worker's Python processes; may take seconds."""


@runtime_checkable
class Leaves(Protocol):
    """Runtime that can write files among the results of a job."""

    async def leave(self, job: str, name: str, text: bytes) -> None:
        """Write a file among the results of a job. Raises OSError."""


@runtime_checkable
class Reachable(Protocol):
    """Runtime whose workers have their own addresses and ports.

    Attributes:
        listen: Address on which a program in a worker must listen to be reachable.
    """

    listen: str

    def host_of(self, worker: WorkerId) -> str | None:
        """Return the host of a running worker, or None if it is unknown."""


@runtime_checkable
class UnexpectedWorkers(Protocol):
    """Runtime that reports unexpected workers and leaves them running."""

    def unexpected_workers(self) -> tuple[UnexpectedWorker, ...]:
        """Return the unexpected workers that run now."""

    async def adopt(self, worker: WorkerId) -> None:
        """Expect a worker from now on: ``events`` reports its state, as after ``open``."""

    async def end(self, worker: WorkerId, notice: Notice) -> None:
        """Stop an unexpected worker, and return when it has ended."""


@runtime_checkable
class Gates(Protocol):
    """Runtime that admits notebook servers to the GPUs of their leases."""

    async def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Admit the server of a lease to these GPUs, now or when it appears.

        Call it again for every lease in force after a start; repeating the call has no effect.
        """

    def release(self, lease: str) -> None:
        """Forget a lease."""


@runtime_checkable
class Holding(Protocol):
    """Runtime that knows the processes on a GPU."""

    async def holders(self, gpus: Sequence[str]) -> tuple[int, ...] | None:
        """Return the processes that compute on these GPUs now, or None if unknown."""


@runtime_checkable
class Hearing(Protocol):
    """Runtime that is notified of changes to its machines, and so needs no frequent polling."""

    async def machines_changed(self) -> None:
        """Wait until ``devices`` or ``nodes`` may have changed; one consumer."""


@dataclass(frozen=True, slots=True)
class StartFault:
    """Why a machine could not start a worker: ``errno`` if known, and a text."""

    number: int | None
    text: str


@runtime_checkable
class Trials(Protocol):
    """Runtime that can test a machine by starting a worker of its own."""

    async def try_start(self, node: str) -> StartFault | None:
        """Start a test worker that ends at once; return the fault, or None if it started."""


@runtime_checkable
class Results(Protocol):
    """Runtime whose workers upload their results where they cannot write them to a volume."""

    def results(self, job: str, worker: int) -> Path | None:
        """Return the packed results (tar) of a worker of the job's last attempt, or None."""
