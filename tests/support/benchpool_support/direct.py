"""httpx as the tests call it: straight to what they started, past any proxy of the environment.

Somebody whose shell names an HTTP proxy gets the same results. What the product does with such
variables is its own matter: the processes that tests start inherit them.
"""

from __future__ import annotations

from functools import partial

import httpx

Client = partial(httpx.Client, trust_env=False)
AsyncClient = partial(httpx.AsyncClient, trust_env=False)
get = partial(httpx.get, trust_env=False)
post = partial(httpx.post, trust_env=False)
put = partial(httpx.put, trust_env=False)
request = partial(httpx.request, trust_env=False)
stream = partial(httpx.stream, trust_env=False)
