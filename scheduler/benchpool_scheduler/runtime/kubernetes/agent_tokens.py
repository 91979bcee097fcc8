"""Authentication of agents: an HMAC of job, attempt and worker.

Nothing is stored: the scheduler's secret is enough to check a token. A token is valid for its own
worker only.
"""

from __future__ import annotations

import hashlib
import hmac

from benchpool_scheduler.runtime import WorkerId

SECRET_BYTES = 32


class AgentTokens:
    """Creates and checks tokens.

    >>> tokens = AgentTokens(b"0" * 32)
    >>> susans = WorkerId("job", 1, 0)
    >>> tokens.good(susans, tokens.of(susans)), tokens.good(WorkerId("job", 2, 0), "0" * 64)
    (True, False)
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < SECRET_BYTES:
            raise ValueError(f"the secret has {len(secret)} bytes, at least {SECRET_BYTES} needed")
        self._secret = secret

    def of(self, worker: WorkerId) -> str:
        """Return the token of a worker."""
        return self._made("worker", worker.job, str(worker.attempt), str(worker.worker))

    def of_gang(self, job: str, attempt: int) -> str:
        """Return the key by which the workers of an attempt authenticate each other.

        The scheduler does not accept it as a token.
        """
        return self._made("gang", job, str(attempt))

    def _made(self, *parts: str) -> str:
        # Each part is preceded by its length, so that different workers never give the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def good(self, worker: WorkerId, token: str) -> bool:
        """Return whether a token belongs to a worker; takes constant time."""
        return hmac.compare_digest(self.of(worker).encode(), token.encode())
