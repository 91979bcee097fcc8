"""Training pool of benchpool: the decision core and the service."""

__version__ = "0.2.0"
