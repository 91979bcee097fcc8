"""The agent: what runs in a worker's pod, in front of the job's command.

It fetches the submitted files, starts the same supervisor as on a workstation, passes on what the
scheduler wants, and carries log, progress and results back. It uses the standard library only
(Python 3.10 or newer), because it runs by the Python of the job's own image; it is put there as one
zip file. The scheduler may be away for minutes: everything waits and is sent again.

    paths               where things lie in the pod
    config              what it is told
    environment         the environment of the command: pure
    link                HTTP to the scheduler, repeated while it is away
    fetching            submitted files, and what an earlier attempt saved
    shipping            the log and the progress
    archives            checkpoint and results, packed, where no volume holds them
    children            processes of ours, and whatever else ends in the pod
    supervised_command  the supervisor as a process of ours
    shells              shells that the scheduler asks for; terminal is one of them
    run                 fetch, start, watch, send, end
"""
