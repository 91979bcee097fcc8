"""Differences between two runs: pure comparisons of their submissions and records."""
