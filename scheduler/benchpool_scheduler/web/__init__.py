"""The dashboard: server-rendered pages that scripts keep fresh.

``routes`` is all that the application needs of it. Pages show what ``service.Pool`` answers to the
reader; they decide nothing about rights themselves.
"""

from benchpool_scheduler.web.routes import routes

__all__ = ["routes"]
