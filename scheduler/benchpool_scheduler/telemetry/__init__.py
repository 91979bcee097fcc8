"""What GPUs and workers really did: samplers, their samples, and a database that may be lost.

``samples`` says what is measured, ``sampler`` is the port to what measures GPUs, ``database`` keeps
it and is what readers ask. Who held a GPU is told by the service; nothing here knows the ledger.
"""

from benchpool_scheduler.telemetry.database import FAULTS as FAULTS
from benchpool_scheduler.telemetry.database import Database as Database
from benchpool_scheduler.telemetry.reading import ActivityBucket as ActivityBucket
from benchpool_scheduler.telemetry.reading import WorkerTotal as WorkerTotal
from benchpool_scheduler.telemetry.recording import Recorder as Recorder
from benchpool_scheduler.telemetry.sampler import NO_SAMPLING as NO_SAMPLING
from benchpool_scheduler.telemetry.sampler import GpuSampler as GpuSampler
from benchpool_scheduler.telemetry.sampler import NoSampler as NoSampler
from benchpool_scheduler.telemetry.sampler import Sampling as Sampling
from benchpool_scheduler.telemetry.samples import NOBODY as NOBODY
from benchpool_scheduler.telemetry.samples import GpuSample as GpuSample
from benchpool_scheduler.telemetry.samples import HeldSample as HeldSample
from benchpool_scheduler.telemetry.samples import HeldWorkerSample as HeldWorkerSample
from benchpool_scheduler.telemetry.samples import Holder as Holder
from benchpool_scheduler.telemetry.samples import WorkerSample as WorkerSample
