"""Preemption: choice of victims so that an entitled claimant starts (R3, R15-R19).

Entry points: ``victims`` for GPUs of other jobs, ``consolidation`` for GPUs freed by moving jobs,
and ``benches`` for GPUs that benches reclaim. ``reprieve`` ends a pass.
"""
