"""The runtime port: start, stop, observe and read the logs of workers, wherever they run.

``local`` runs them as processes of this machine. A runtime acts; it decides nothing. All calls
are idempotent by (job, attempt, worker), so that a restart may repeat them.
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
from benchpool_scheduler.worker.folders import Part as Part  # a kind of files
from benchpool_scheduler.worker.metric_lines import ReportedValue as ReportedValue
from benchpool_scheduler.worker.tracker_runs import ReportedRun as ReportedRun
from benchpool_scheduler.worker.worker_id import WorkerId as WorkerId  # every verb takes one


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """A file to lay into the working folder: relative path, content hash, executable or not."""

    path: str
    sha256: str
    executable: bool = False


SandboxLevel = Literal["auto", "full", "off"]
"""How the workers of one machine are kept from each other (``runtime.local.sandbox``)."""


@dataclass(frozen=True, slots=True)
class Launch:
    """All that a worker needs; nothing else of our environment reaches it.

    Attributes:
        argv: The command; the first word is an absolute path or looked up in ``env["PATH"]``.
        env: The whole environment except what the runtime itself adds (formats, section 7).
        gpus: UUIDs for ``CUDA_VISIBLE_DEVICES``.
        working_dir: Absolute folder to run in; None runs in a fresh copy of ``files``.
        files: Snapshot to lay out when ``working_dir`` is None; contents come from the objects.
        output_dir: Absolute folder of the submitter into which results are copied at the end.
        account: System account to run as; None keeps the account of the service.
        grace_s: Seconds between notice and kill. ``time_limit_s``: seconds after which it is ended.
        nodes: Node name of each worker of the gang, by index; ``port``: its rendezvous port.
        image: Container image; None takes the site's. Only where workers are containers.
        cpus: Processor cores of the worker, ``memory_gib`` its memory; 0 for no bound.
        objects: Contents that ``argv`` names besides ``files``, by hash.
        serves: Port on which it answers requests that the scheduler passes on; None for none.
        origin: A note to lay beside the attempt's records: what the job is, for a service that does
            not know it. Opaque to the runtime.
        admitted: Its pod is there already, made by others: it is let in, and nothing is made.
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
    """What the worker finds in ``BENCHPOOL_NOTICE_FILE`` (formats, section 7)."""

    kind: Literal["pause", "cancel"]
    grace_s: float
    for_: str
    text: str


@dataclass(frozen=True, slots=True)
class Stranger:
    """A worker that runs and that nobody expected.

    Attributes:
        since: When its command started. ``origin``: the note of its start, empty for none.
        variables: Those of its process, where they can be read; ``argv`` its command, and
            ``working_dir`` where it runs.
    """

    worker: WorkerId
    since: float | None
    origin: bytes
    variables: Mapping[str, str]
    argv: tuple[str, ...] = ()
    working_dir: str = ""


class EndedBy(StrEnum):
    """Why a worker ended, as far as the runtime can tell."""

    ITSELF = "itself"
    NOTICE = "notice"  # ended after a notice, within the grace period or killed at its end
    TIME_LIMIT = "time-limit"
    OUT_OF_MEMORY = "out-of-memory"
    COULD_NOT_START = "could-not-start"
    NOT_TAKEN = "not-taken"  # its node did not take it; nothing ran, and other nodes may do
    MACHINE_FAULT = "machine-fault"  # the machine ran out of something or failed; nothing ran
    NO_ROOM = "no-room"  # a quota or limit of the namespace let nothing of it in; nothing ran
    LOST = "lost"  # its machine was restarted, or its supervisor was killed


@dataclass(frozen=True, slots=True)
class WorkerStarted:
    """The worker's process runs. ``at`` is seconds since the epoch."""

    worker: WorkerId
    at: float


@dataclass(frozen=True, slots=True)
class WorkerEnded:
    """The worker and everything it started is gone, and its GPUs are free.

    ``exit_code`` follows the shell: 128 + n after signal n; None when it is not known.
    ``text`` is a sentence for the user where the end needs one; ``fault`` the number of the
    machine's fault (``errno``) where that is known. ``cause`` is what is known of a failure beyond
    its exit code, a word of ``contract.causes``; ``traceback`` a mark that equal ones share.
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
    """The worker wrote its progress file, began a run in a tracker, or saved."""

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
    """The worker reported values, oldest first, by its own clock."""

    worker: WorkerId
    at: float
    values: tuple[ReportedValue, ...]


WorkerEvent = WorkerStarted | WorkerEnded | WorkerProgress | WorkerMetrics


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A machine as found, whoever uses it.

    Attributes:
        labels: As the machine has them, by name.
        taints: Key, value and effect of what keeps pods away that do not bear it.
        cpus: Processor cores that our workers may have together: what it offers without what
            others there have asked for; None for no bound. ``memory_gib`` likewise.
        ready: A worker may be started there; ``note`` says why not. GPUs of a machine that is not
            ready are not lost: jobs wait for them.
        gpus: UUIDs of the GPUs that ``links`` and ``sockets`` are about, in their order.
        links: How close two of them are; larger is closer. Empty where nothing is known (R12).
        sockets: The CPU socket of each of them. Empty where nothing is known.
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
    """An image by its digest; or as it was named, and ``why`` no digest of it is known."""

    image: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a log from ``offset``; ``ended`` when nothing more will come.

    ``skipped`` counts bytes that the size bound dropped just before ``offset``.
    """

    offset: int
    data: bytes
    ended: bool
    skipped: int = 0

    @property
    def next_offset(self) -> int:
        """Where the following chunk begins."""
        return self.offset + len(self.data)


class Runtime(Protocol):
    """Where workers run."""

    async def open(self, expected: Sequence[WorkerId]) -> None:
        """Find the workers of an earlier service again.

        Afterwards ``events`` tells the present state of each expected worker: started, ended
        (with the exit code its supervisor kept), or ended as lost. A worker that runs and is not
        expected is ended, or left alone as one of its ``Strangers``.
        """

    async def close(self) -> None:
        """Let go of everything; workers run on."""

    async def devices(self) -> tuple[Device, ...]:
        """Return the GPUs as they are now; cached for at most a few seconds.

        The same tuple again tells at no cost that nothing has changed.
        """

    async def nodes(self) -> tuple[NodeFacts, ...]:
        """Return the machines as they are now, under the same terms as ``devices``.

        Of a machine with GPUs that is not among them nothing is known but its GPUs.
        """

    def denied_devices(self, gpus: Sequence[str]) -> Sequence[tuple[int, int]]:
        """Return the device files that a process of this machine with these GPUs must not open.

        By major and minor number; nothing where machines keep pods apart by themselves.
        """

    def nodes_for_claim(self, claim: str) -> frozenset[str] | None:
        """Return where a volume claim can be used, None for everywhere or not known yet."""

    async def start(self, launch: Launch) -> None:
        """Start a worker; the outcome comes as an event. Repeating it does nothing."""

    async def stop(self, worker: WorkerId, notice: Notice) -> None:
        """Give notice, then SIGTERM, after the grace SIGKILL to all it started.

        Errors: whatever keeps it from being told; the caller repeats it until the worker ends.
        """

    def events(self) -> AsyncIterator[WorkerEvent]:
        """Yield what happens to workers, in order; one consumer."""

    async def read_log(self, worker: WorkerId, offset: int, limit: int) -> LogChunk:
        """Return at most ``limit`` bytes from ``offset``; empty when there are none yet."""

    async def find_log_offset(self, worker: WorkerId, since: float | None) -> int:
        """Return the first offset written at ``since`` (seconds since the epoch) or later.

        None asks for the log's present end.
        """

    async def wait_log(self, worker: WorkerId, offset: int, timeout_s: float) -> bool:
        """Wait until there are bytes after ``offset`` or the log ended; false on time-out."""

    async def forget(self, job: str) -> None:
        """Delete all files of an ended job."""

    async def prune(self, jobs: Sequence[str], part: Part) -> None:
        """Delete one kind of files of ended jobs, where they are still there; the rest stays."""


@runtime_checkable
class Stacks(Protocol):
    """The side of a runtime that looks into running workers."""

    async def stacks(self, worker: WorkerId) -> WorkerStacks:
        """Return what a worker's Python processes are doing; it may take seconds."""


@runtime_checkable
class Leaves(Protocol):
    """The side of a runtime that can lay files among the results of a job."""

    async def leave(self, job: str, name: str, text: bytes) -> None:
        """Lay a file there. Errors: OSError."""


@runtime_checkable
class Reachable(Protocol):
    """The side of a runtime whose workers have addresses and ports of their own.

    Attributes:
        listen: On what a program there must listen to be reached.
    """

    listen: str

    def host_of(self, worker: WorkerId) -> str | None:
        """Return where a worker that runs is reached; None where that is not known."""


@runtime_checkable
class Strangers(Protocol):
    """The side of a runtime that leaves workers alone which nobody expected, and tells of them."""

    def strangers(self) -> tuple[Stranger, ...]:
        """Return those that run now."""

    async def adopt(self, worker: WorkerId) -> None:
        """Expect a worker from now on: ``events`` tells its state, as after ``open``."""

    async def end(self, worker: WorkerId, notice: Notice) -> None:
        """Stop a stranger, and return when it is gone."""


@runtime_checkable
class Gates(Protocol):
    """The side of a runtime that lets notebook servers begin on the GPUs of their leases."""

    async def hold(self, lease: str, slots: tuple[str, ...]) -> None:
        """Let the server of a lease begin on these GPUs, now or when it comes.

        It is told of every lease in force after a start too; repeating it does nothing.
        """

    def release(self, lease: str) -> None:
        """Forget a lease."""


@runtime_checkable
class Holding(Protocol):
    """The side of a runtime that sees whose processes are on a GPU."""

    async def holders(self, gpus: Sequence[str]) -> tuple[int, ...] | None:
        """Return the processes that compute on these GPUs now; None where that is not known."""


@runtime_checkable
class Hearing(Protocol):
    """The side of a runtime that hears of its machines, and need not be asked all the time."""

    async def machines_changed(self) -> None:
        """Wait until ``devices`` or ``nodes`` may tell something new; one consumer."""


@dataclass(frozen=True, slots=True)
class StartFault:
    """Why a machine could not start a worker: the number (``errno``), if known, and in words."""

    number: int | None
    text: str


@runtime_checkable
class Trials(Protocol):
    """The side of a runtime whose machines can be tried with a start that is no job's."""

    async def try_start(self, node: str) -> StartFault | None:
        """Start a worker of our own that ends at once; return why it could not, None if it did."""


@runtime_checkable
class Results(Protocol):
    """The side of a runtime whose workers send what they leave, where they cannot lay it down."""

    def results(self, job: str, worker: int) -> Path | None:
        """Return the packed results (tar) of a worker of the job's last attempt, None for none."""
