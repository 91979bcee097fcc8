"""The note at a job's end: three numbers, a sentence of diagnosis, one change; pure.

``rules`` is the table, ``note`` the door: from the numbers that are kept of a job to what is said.
The idea is that of jobstats (Princeton), seen in its documentation; thresholds are our own.
"""

from benchpool_scheduler.accounting.job_notes.finished import FinishedJob as FinishedJob
from benchpool_scheduler.accounting.job_notes.finished import PoolSizes as PoolSizes
from benchpool_scheduler.accounting.job_notes.note import note as note
from benchpool_scheduler.accounting.job_notes.note import unmeasured as unmeasured
