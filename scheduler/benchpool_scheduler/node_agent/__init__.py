"""The agent of a cluster node: measures its GPUs and pods, and reports to the scheduler.

    python -m benchpool_scheduler.node_agent

``kubelet`` returns the pods of each device. ``pod_cgroups`` finds the cgroups in which the kernel
counts the use of a pod. ``looking`` combines both and the driver's figures into one report, and
``reporting`` sends it. The agent decides nothing and stores nothing: a report that cannot be sent
is a gap.
"""
