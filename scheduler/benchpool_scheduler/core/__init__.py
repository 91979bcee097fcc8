"""Decision core: takes a snapshot and returns a plan of commands and reasons.

The core has no effects: no clock, randomness, threads, logging or I/O. Entry point for one pass:
``plan.decide``. ``model`` holds its input and output types. The packages, each with its own entry
point, in order of dependency:

- ``lifecycle``: the states of a job
- ``benches``: quotas of benches and their queue
- ``journal``: the changes of a pass and their rollback
- ``jobs``: jobs and projects with exact amounts
- ``capacity``: free capacity and placement
- ``fairness``: holdings, shares and order
- ``cluster``: the cluster state kept between passes
- ``preemption``: choice of victims
- ``backfill``: reservations for large jobs
- ``explain``: why a job waits
- ``effects``: the outcome of a plan
- ``forecast``: when jobs will start
- ``whatif``: the same pool under other conditions

>>> from benchpool_scheduler.contract.spec import JobSpec
>>> from benchpool_scheduler.core.model import GpuId, JobFacts, JobId, Node, NodeName
>>> from benchpool_scheduler.core.model import Project, ProjectName, Snapshot
>>> from benchpool_scheduler.core.plan import decide
>>> a, b = GpuId("a"), GpuId("b")
>>> pool = Snapshot(
...     nodes=(Node(NodeName("box"), (a, b)),),
...     projects=(Project(ProjectName("susan"), quota=1),),
...     jobs=(
...         JobFacts(JobId("one"), ProjectName("susan"), JobSpec(gpus=2)),
...         JobFacts(JobId("two"), ProjectName("susan")),
...     ),
... )
>>> decided = decide(pool)
>>> [command.workers for command in decided.commands]
[(Worker(node='box', gpus=('a', 'b'), part=None),)]
>>> decided.reasons["two"].code.value
'fair-share-reached'
"""
