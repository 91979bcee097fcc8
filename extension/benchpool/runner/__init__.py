"""Runner of a notebook as a job, on the worker's side of the pool.

    python -m benchpool.runner notebook --notebook FILE --name NAME --interpreter PYTHON
        --cwd FOLDER --output FOLDER

Standard output is the job's log. The executed copy is written while cells run, so that a killed job
still shows what it printed. Exit status: that of the notebook's own ``SystemExit``; 0 if all cells
ran; 1 if a cell failed; 143 if it was asked to stop and had not finished; 128 plus the signal if
the kernel was killed.
"""
