"""What-if: the same pool with another job, other quotas or more GPUs, decided by the same core.

Entry points: ``preview.preview`` for one job, ``whatif.compare`` for two pools.
"""
