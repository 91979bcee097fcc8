"""What both runtimes share to run one worker: the standard library only, Python 3.10 or newer.

The supervisor runs without site packages, and the agent runs by the Python of a job's own image, so
nothing here imports anything else of benchpool.

    worker_id           which worker
    folders             where everything of a job lies in the state folder
    records             the small files of a worker's folder
    process_identity    which process a number means
    supervisor          the process that watches over one worker
    supervisor_process  start one, from a folder or from a zip file
    shell_terminal      open a shell inside a worker; shell_entry is what becomes it
    log_files           names and bounds of the files of a log; log_writer and log_reader use them
    gpu_files           which device files go with which GPUs
    process_limit       how many processes a worker or a notebook server may have
    progress            what a worker says of itself
    metric_lines        what it reports step by step
    tracker_runs        the runs that it began in trackers
    rendezvous          what the workers of a gang read to meet
"""
