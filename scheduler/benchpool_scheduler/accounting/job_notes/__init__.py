"""The note at a job's end: three numbers, a sentence of diagnosis, one change. Pure.

``rules`` is the table. Entry point: ``note`` makes the text from the kept numbers of a job. The
idea is that of jobstats (Princeton), seen in its documentation; thresholds are our own.
"""

from benchpool_scheduler.accounting.job_notes.finished import FinishedJob as FinishedJob
from benchpool_scheduler.accounting.job_notes.finished import PoolSizes as PoolSizes
from benchpool_scheduler.accounting.job_notes.note import note as note
from benchpool_scheduler.accounting.job_notes.note import unmeasured as unmeasured
