"""The agent: the program in a worker's pod that starts the job's command.

The agent fetches the submitted files and starts the same supervisor as on a workstation. It
forwards the scheduler's requests and sends log, progress and results back. It uses the standard
library only (Python 3.10 or newer), because it runs under the Python of the job's own image. It is
installed in the pod as one zip file. The scheduler may be down for minutes: requests wait and are
repeated.

    paths               locations in the pod
    config              the configuration of the attempt
    environment         the environment of the command: pure
    link                HTTP to the scheduler, repeated while it is down
    fetching            submitted files, and the checkpoint of an earlier attempt
    shipping            the log and the progress
    archives            checkpoint and results, packed, where no volume holds them
    children            child processes, and all other processes that end in the pod
    supervised_command  the supervisor as a child process
    shells              shells that the scheduler requests; terminal is one of them
    run                 fetch, start, watch, send, end
"""
