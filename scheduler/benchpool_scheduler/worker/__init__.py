"""Code that runs one worker, shared by both runtimes: standard library only, Python 3.10 or newer.

The supervisor runs without site packages, and the agent runs under the Python of a job's own image.
Therefore nothing here imports other packages of benchpool.

    worker_id           identity of a worker
    folders             locations of a job's files in the state folder
    records             the small files of a worker's folder
    process_identity    identity of a process beyond its pid
    supervisor          the process that watches one worker
    supervisor_process  start of a supervisor, from a folder or from a zip file
    shell_terminal      open a shell inside a worker; shell_entry becomes the shell
    log_files           names and limits of a log's files, for log_writer and log_reader
    gpu_files           device files of GPUs
    process_limit       limit for processes of a worker or a notebook server
    progress            progress that a worker reports
    metric_lines        values that it reports step by step
    tracker_runs        runs that it began in trackers
    rendezvous          variables by which the workers of a gang connect
"""
