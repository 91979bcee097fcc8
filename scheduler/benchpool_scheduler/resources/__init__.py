"""Declarations of the custom resources of ``benchpool.io/v1``."""
