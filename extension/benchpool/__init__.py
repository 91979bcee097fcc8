"""benchpool in Python."""
