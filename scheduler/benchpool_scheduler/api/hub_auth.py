"""JupyterHub's identity code, extended to distinguish a refused token from a failing Hub.

A Hub that cannot read its database, for instance while another program holds its lock, answers 403
to every token. JupyterHub's code takes that for an unknown token, caches it and deletes the
browser's session cookie.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from jupyterhub.services.auth import HubOAuth, _ExpiringDict
from tornado.web import HTTPError
from traitlets import default


class _KnownTokens(_ExpiringDict):  # type: ignore[misc]  # jupyterhub has no type hints
    """Cache of token owners that stores no refusals."""

    def __setitem__(self, key: str, value: object) -> None:
        if value is not None:
            super().__setitem__(key, value)


class CertainHubAuth(HubOAuth):  # type: ignore[misc]  # jupyterhub has no type hints
    """HubOAuth that verifies a refusal before it reports one."""

    @default("cache")
    def _only_known_tokens(self) -> _KnownTokens:
        return _KnownTokens(self.cache_max_age)

    def user_for_token(
        self, token: str, use_cache: bool = True, session_id: str = "", *, sync: bool = True
    ) -> Any:
        """Return the user model of a token's owner, or None. Awaitable if ``sync`` is False.

        Only the awaitable verifies refusals. The API never uses the synchronous form.

        Raises:
            HTTPError: The Hub does not answer, or refuses the service's own token too.
        """
        if sync:
            return super().user_for_token(token, use_cache, session_id)
        ask = partial(super().user_for_token, token, session_id=session_id, sync=False)
        ours = partial(super().user_for_token, self.api_token, use_cache=False, sync=False)
        return _certain(ask, ours, use_cache)


async def _certain(ask: Any, ours: Any, use_cache: bool) -> Any:
    known = await ask(use_cache=use_cache)
    if known is not None:
        return known
    if await ours() is None:
        raise HTTPError(503, "The Hub rejects the token of this service")
    return await ask(use_cache=False)  # the Hub may have recovered between the two requests
