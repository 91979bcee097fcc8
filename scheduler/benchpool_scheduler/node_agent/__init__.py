"""The agent of a node of a cluster: measures its GPUs and pods, and reports that to the scheduler.

    python -m benchpool_scheduler.node_agent

``kubelet`` tells which pod has which device, ``pod_cgroups`` where the kernel counts what a pod
uses, ``looking`` makes one report of both and of what the driver tells, ``reporting`` sends it. It
decides nothing and keeps nothing: what cannot be sent is a gap.
"""
