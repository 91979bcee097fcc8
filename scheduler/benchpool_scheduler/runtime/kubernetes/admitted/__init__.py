"""Pods of others in listed namespaces, admitted by gate: from pods to jobs, and back to the gate.

``workloads`` is pure: which pods are one job, and what that job asks for. ``admitted_pods`` acts.
"""
