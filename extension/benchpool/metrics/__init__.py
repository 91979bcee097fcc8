"""Metrics of a job: numbers that a program reports step by step. Standard library only.

For example::

    import benchpool

    for step, batch in enumerate(batches):
        loss = train(batch)
        benchpool.log(loss=loss, step=step)

The metrics are shown as curves on the job's page, in JupyterLab and by ``benchpool metrics ID``.
Outside a job the call does nothing. Works on every Python from 3.9, and imports no other package.
"""

from __future__ import annotations

from benchpool.metrics.reporting import log

__all__ = ["log"]
