"""Jobs and projects as a pass sees them: exact amounts, the tree of projects, what a job requires,
which waiting jobs are equal, and when jobs end as far as that is known.

Door: ``job_info.work_of``.
"""
