"""The decision core: a snapshot goes in, a plan with commands and reasons comes out.

Nothing here acts: no clock, randomness, threads, logging or I/O. ``plan.decide`` is the door for
one pass; ``model`` says what goes in and out. The rooms, each with its own door, from the ground
up:

- ``lifecycle``: the states of a job; ``benches``: quotas of benches and the line for them;
- ``journal``: what a pass has changed, and how it is taken back;
- ``jobs``: jobs and projects with exact amounts; ``capacity``: what is free where, and placement;
- ``fairness``: holdings, shares and turns; ``cluster``: all of it, kept between passes;
- ``preemption``: who gives way; ``backfill``: room kept for large jobs;
- ``explain``: why a job waits; ``effects``: what a plan comes to;
- ``forecast``: when jobs will start; ``whatif``: the same pool otherwise.

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
