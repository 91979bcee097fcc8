"""What callers are shown: jobs, the pool, estimates, events, figures for Prometheus.

Doors: ``job_views.JobViews``, ``pool_views.PoolViews``, ``events.Feed``.
"""
