"""The custom resources of ``benchpool.io/v1``, declared once."""
