"""Admission of pods created outside benchpool, in the listed namespaces, by a scheduling gate.

``workloads`` is pure: it groups pods into jobs and computes the requests of each job.
``admitted_pods`` acts.
"""
