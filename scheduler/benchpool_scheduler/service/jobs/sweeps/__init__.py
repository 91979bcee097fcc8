"""Execution of sweeps: trials become jobs, reported values are judged, and results are recorded."""
