"""Content-addressed files of snapshots and notebooks, uploaded by their users."""

from __future__ import annotations


class ObjectWriter:
    """Receives one object; it exists only after ``close`` has verified length and hash."""

    async def write(self, data: bytes) -> None:
        """Add bytes. Errors: TooLarge beyond the size that was announced, Unavailable."""
        raise NotImplementedError

    async def close(self) -> None:
        """Verify and keep the object. Errors: InvalidInput when hash or length differ."""
        raise NotImplementedError

    def abort(self) -> None:
        """Drop what was written; harmless after ``close``."""
        raise NotImplementedError
