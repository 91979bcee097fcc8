"""The scheduler's process: ``python -m benchpool_scheduler.app``, started by the Hub or a cluster.

The only place that names concrete store, runtime and identity, and that reads the service's
environment. SIGTERM and SIGINT end it in good order (jobs run on). SIGHUP reads
``notifications.yaml`` again, on one machine ``benchpool.yaml`` too, each all or nothing; on a
cluster one of several replicas leads.

This package loads nothing by itself: ``benchpool up`` asks some of its modules, and starts within a
second because it does not load the service.
"""
