"""The dashboard: server-rendered pages that scripts update.

Entry point: ``routes``. Pages show the answers of ``service.Pool`` to the reader, and make no
decisions about permissions themselves.
"""

from benchpool_scheduler.web.routes import routes

__all__ = ["routes"]
