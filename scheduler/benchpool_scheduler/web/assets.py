"""Style sheets and scripts: the same for all users, so without login; always revalidated."""

from __future__ import annotations

from tornado.web import HTTPError, StaticFileHandler


class AssetHandler(StaticFileHandler):
    """Files of the ``static`` folder; browsers revalidate them, so an upgrade takes effect at
    once.
    """

    def set_default_headers(self) -> None:
        """Forbid guesses of another content type."""
        self.set_header("X-Content-Type-Options", "nosniff")

    def set_extra_headers(self, path: str) -> None:
        """Require revalidation; the answer is 304 while the file is unchanged."""
        self.set_header("Cache-Control", "no-cache")

    def parse_url_path(self, url_path: str) -> str:
        """Return the path of a file; an invalid file name is not found."""
        if "\0" in url_path:
            raise HTTPError(404)
        return super().parse_url_path(url_path)
