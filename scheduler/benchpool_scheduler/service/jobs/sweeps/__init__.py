"""Sweeps carried out: trials become jobs, what they report is judged, what came of them is kept."""
