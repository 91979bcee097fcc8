"""The supervisor: one small process per worker that outlives the scheduler.

It starts the command, keeps its output, enforces notice, grace and time limit, kills everything
the worker started, writes down the exit code, and brings the results home. It knows nothing of
jobs, quotas, databases or the network, and uses the standard library only, so that a running
one never needs an upgrade. On a workstation it is started without site packages, with ``worker`` as
the topmost package, so that nothing of the scheduler is imported with it; it imports all it needs
at its start, because its files may be replaced while it runs.

    config       what it is told, and requests to stop
    run          lay out, start, watch, stop, end
    schedule     pure: when notice, SIGTERM and SIGKILL are due
    child        fork and exec with exactly the given environment
    containment  find and kill everything that the worker started
    cgroups      what holds its processes together, and bounds what they take
    privacy      a /tmp of its own, and others' processes hidden
    probe        which of these hold here
    outcome      what is said of its end
    snapshot     lay out the submitted files
    results      copy what the worker left to its submitter
"""
