"""Style and scripts: the same for everybody, so they need no login; always asked for again."""

from __future__ import annotations

from tornado.web import StaticFileHandler


class AssetHandler(StaticFileHandler):
    """Files of the ``static`` folder; browsers revalidate them, so an upgrade is seen at once."""

    def set_default_headers(self) -> None:
        """Let nobody guess another content type."""
        self.set_header("X-Content-Type-Options", "nosniff")

    def set_extra_headers(self, path: str) -> None:
        """Ask for revalidation; the answer is 304 while nothing changed."""
        self.set_header("Cache-Control", "no-cache")
