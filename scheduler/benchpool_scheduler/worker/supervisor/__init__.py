"""The supervisor: one small process per worker that outlives the scheduler.

The supervisor starts the command, keeps its output, and enforces notice, grace period and time
limit. It kills everything that the worker started, records the exit code, and delivers the results.
It is independent of jobs, quotas, databases and the network. It uses the standard library only, so
that a running one never needs an upgrade. On a workstation it is started without site packages,
with ``worker`` as the topmost package, so that it imports nothing of the scheduler. It imports all
modules at its start, because its files may be replaced while it runs.

    config       its configuration, and requests to stop
    run          prepare files, start, watch, stop, end
    schedule     pure: when notice, SIGTERM and SIGKILL are due
    child        fork and exec with exactly the given environment
    containment  find and kill everything that the worker started
    cgroups      groups of its processes, with limits on resources
    privacy      a private /tmp, and hidden processes of other accounts
    probe        features that this machine supports
    outcome      the record of its end
    snapshot     write the submitted files
    results      copy the worker's results to its submitter
"""
