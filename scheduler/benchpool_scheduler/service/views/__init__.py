"""API views: jobs, the pool, estimates, events, metrics for Prometheus.

Entry points: ``job_views.JobViews``, ``pool_views.PoolViews``, ``events.Feed``.
"""
