"""Node of the pod that presents a token, checked by the API server (TokenReview).

Source: Kubernetes' documentation, "TokenReview", and "Bound service account tokens": the token of a
pod names its node since 1.30.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

from benchpool_scheduler.errors import Unavailable
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.kube.connection import Connection
from benchpool_scheduler.kube.failures import KubeFailure
from benchpool_scheduler.kube.retry import RetryPolicy

NODE = "authentication.kubernetes.io/node-name"
KNOWN_S = 120.0
"""Cache lifetime of a token, in seconds.

The token of a deleted pod is accepted for at most this time.
"""
REFUSED_S = 10.0
MOST_KNOWN = 8192
MOST_TOKEN = 16 * 1024
MOST_ASKING = 16
"""Most concurrent reviews, so that unknown clients cannot overload the API server."""
PATIENCE = RetryPolicy(total_s=5.0)


class ReviewedUser(Struct, frozen=True):
    """Owner of a token."""

    username: str = ""
    extra: dict[str, list[str]] = {}


class ReviewStatus(Struct, frozen=True):
    """Result of a token review."""

    authenticated: bool = False
    user: ReviewedUser = ReviewedUser()
    audiences: list[str] = []


class TokenReview(Struct, frozen=True):
    """A token review."""

    status: ReviewStatus = ReviewStatus()


class PodTokens:
    """Finds the node of a pod by the token that it presents.

    Args:
        account: Account of the pods, ``system:serviceaccount:NAMESPACE:NAME``.
        audience: Audience of their tokens; other tokens are rejected.
        clock: Clock in monotonic seconds.
    """

    def __init__(
        self,
        connection: Connection,
        account: str,
        audience: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connection = connection
        self._account = account
        self._audience = audience
        self._clock = clock
        self._asking = 0
        self._known: dict[bytes, tuple[float, str | None]] = {}

    async def node(self, token: str) -> str | None:
        """Return the node of the pod with this token; None for any other token.

        Raises Unavailable if the API server does not answer or rejects the review, or if too many
        reviews are in progress.
        """
        if not 0 < len(token) <= MOST_TOKEN:
            return None
        key, now = hashlib.sha256(token.encode()).digest(), self._clock()
        found = self._known.get(key)
        if found is not None and now < found[0]:
            return found[1]
        node = self._node_of(await self._reviewed(token))
        if len(self._known) >= MOST_KNOWN:
            self._known = {key: it for key, it in self._known.items() if now < it[0]}
        if len(self._known) < MOST_KNOWN:
            self._known[key] = (now + (REFUSED_S if node is None else KNOWN_S), node)
        return node

    async def _reviewed(self, token: str) -> ReviewStatus:
        body: Mapping[str, object] = {
            "apiVersion": kinds.TOKEN_REVIEWS.api_version,
            "kind": kinds.TOKEN_REVIEWS.kind,
            "spec": {"token": token, "audiences": [self._audience]},
        }
        if self._asking >= MOST_ASKING:
            raise Unavailable(
                "Too many token reviews are running. Send the request again in a minute."
            )
        self._asking += 1
        try:
            review = await self._connection.create(
                kinds.TOKEN_REVIEWS, body, as_=TokenReview, patience=PATIENCE
            )
        except KubeFailure as refused:
            raise Unavailable(f"The API server did not review the token: {refused}") from None
        finally:
            self._asking -= 1
        assert isinstance(review, TokenReview)  # noqa: S101 - decoded as such
        return review.status

    def _node_of(self, status: ReviewStatus) -> str | None:
        ours = status.authenticated and status.user.username == self._account
        if not ours or self._audience not in status.audiences:
            return None
        return next(iter(status.user.extra.get(NODE, ())), None)
