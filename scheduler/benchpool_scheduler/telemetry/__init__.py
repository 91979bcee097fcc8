"""Measured use of GPUs and workers: samplers, samples, and a database that may be lost.

``samples`` defines the measured values, ``sampler`` is the port to GPU samplers, and ``database``
stores and queries the values. The service passes in the holder of each GPU; this package does not
use the ledger.
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
from benchpool_scheduler.telemetry.samples import NO_HOLDER as NO_HOLDER
from benchpool_scheduler.telemetry.samples import GpuSample as GpuSample
from benchpool_scheduler.telemetry.samples import HeldSample as HeldSample
from benchpool_scheduler.telemetry.samples import HeldWorkerSample as HeldWorkerSample
from benchpool_scheduler.telemetry.samples import Holder as Holder
from benchpool_scheduler.telemetry.samples import WorkerSample as WorkerSample
