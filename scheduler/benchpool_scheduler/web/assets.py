"""Style and scripts: the same for everybody, so they need no login; always asked for again."""

from __future__ import annotations

from tornado.web import HTTPError, StaticFileHandler


class AssetHandler(StaticFileHandler):
    """Files of the ``static`` folder; browsers revalidate them, so an upgrade is seen at once."""

    def set_default_headers(self) -> None:
        """Let nobody guess another content type."""
        self.set_header("X-Content-Type-Options", "nosniff")

    def set_extra_headers(self, path: str) -> None:
        """Ask for revalidation; the answer is 304 while nothing changed."""
        self.set_header("Cache-Control", "no-cache")

    def parse_url_path(self, url_path: str) -> str:
        """Return where a file would lie; what can be no file's name is none."""
        if "\0" in url_path:
            raise HTTPError(404)
        return super().parse_url_path(url_path)
