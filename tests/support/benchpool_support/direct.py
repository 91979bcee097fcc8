"""httpx for tests: direct connections to the started servers, past any proxy of the environment.

The results are the same for a developer whose shell names an HTTP proxy. The processes that tests
start inherit such variables; the product handles them by its own rules.
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
