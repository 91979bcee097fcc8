"""Runs a notebook as a job, on the worker's side of the pool.

    python -m benchpool.runner notebook --notebook FILE --name NAME --interpreter PYTHON
        --cwd FOLDER --output FOLDER

Standard output is the job's log. The executed copy is written while cells run, so that a job that
is killed still shows what it printed. Exit status: that of the notebook's own ``SystemExit``; 0
when all cells ran; 1 when a cell failed; 143 when it was told to stop and had not finished; 128
plus the signal when the kernel was killed.
"""
