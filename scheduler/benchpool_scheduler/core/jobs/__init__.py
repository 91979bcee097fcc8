"""Jobs and projects as a pass uses them.

The package holds exact amounts, the tree of projects, requirements of jobs, classes of equal
waiting jobs, and known ends of jobs.

Entry point: ``job_info.job_info_of``.
"""
