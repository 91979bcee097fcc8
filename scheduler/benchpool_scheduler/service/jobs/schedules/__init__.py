"""Schedules carried out: their times become jobs, what came of these is kept."""
