"""Execution of schedules: due times become jobs, and outcomes are recorded."""
