"""benchpool_scheduler: the training pool, its decision core and its service."""

__version__ = "0.1.0"
