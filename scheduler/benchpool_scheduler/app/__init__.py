"""Scheduler process: ``python -m benchpool_scheduler.app``, started by the Hub or a cluster.

Only this package names concrete store, runtime and identity classes and reads the service's
environment. SIGTERM and SIGINT stop the process cleanly, and jobs keep running. SIGHUP reloads
``notifications.yaml``, and on one machine ``benchpool.yaml``, each all or nothing. On a cluster one
of several replicas leads.

Importing this package loads nothing else: ``benchpool up`` uses some of its modules, and must start
within a second.
"""
