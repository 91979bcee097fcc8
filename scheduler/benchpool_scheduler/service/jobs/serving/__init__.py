"""Execution of services: their replicas are jobs, and are probed for readiness."""
