"""Calls to the API server: raw JSON in and out, decoded only as far as the caller wants.

``as_`` names what an answer is decoded into: a msgspec ``Struct`` with the few fields that are
needed (others are skipped unread), or nothing for a plain ``dict``. What is sent may be either.

Calls are repeated on 408, 429, 5xx and lost connections, as long as their ``Patience`` lasts. So a
write may have been applied although its first try failed; the repeat then ends in
``AlreadyExists``, ``Conflict`` or ``NotFound``. Give objects names that follow from what they are,
and changes a ``resourceVersion``, and read back what a repeat finds taken.

    async with connect(kubeconfig) as connection:
        pods = await connection.list(PODS, namespace="research", labels="benchpool.io/role=worker")
        await connection.patch(PODS, name, [{"op": "remove", "path": ...}], namespace="research")
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

import aiohttp
import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import credentials
from benchpool_scheduler.kube.credentials import Credentials, Where
from benchpool_scheduler.kube.failures import Gone, KubeUnavailable, failure, status_of
from benchpool_scheduler.kube.kinds import Kind
from benchpool_scheduler.kube.patience import AGAIN, Patience, asked_s, wait_s

T = TypeVar("T")
Object = dict[str, Any]
Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Params = dict[str, str]
Propagation = Literal["Background", "Foreground", "Orphan"]

AT_ONCE = 32
"""Requests under way together; the API server's own work is the limit before this is."""
REQUEST_S = 30.0
CONNECT_S = 5.0
PAGE = 2000
JSON, MERGE_PATCH = "application/json", "application/merge-patch+json"
JSON_PATCH, APPLY_PATCH = "application/json-patch+json", "application/apply-patch+yaml"


class Precondition(Struct, frozen=True, rename={"resource_version": "resourceVersion"}):
    """What must hold of an object that is deleted, else ``Conflict``."""

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects as of one instant; a watch goes on from ``resource_version``."""

    items: tuple[T, ...]
    resource_version: str


class _ListHead(Struct):
    class _Metadata(Struct):
        resourceVersion: str = ""
        # ``continue`` is a word of Python
        going_on: str = msgspec.field(default="", name="continue")

    metadata: _Metadata
    # A list without items may come as null.
    items: list[msgspec.Raw] | None = None


class Connection:
    """A pool of connections to one API server; safe for any number of tasks of one loop.

    Every call may raise ``KubeFailure`` (see ``failures``) or ``KubeUnavailable``.

    Args:
        access: From ``credentials.find``; ``connect`` does both.
        patience: For calls that name none.
        at_once: Requests under way together, watches not counted.

    Attributes:
        namespace: The one that kubeconfig or pod names.
        server: The API server's URL.
        guard: Called before each try of each write, and once more when its body is about to go
            out; what it raises ends the call. An election sets it: a process that was stopped and
            goes on must not write what it had begun.
        writes: Number of writes that were answered well, since the start.
    """

    def __init__(
        self,
        access: Credentials,
        *,
        patience: Patience = Patience(),  # noqa: B008 (frozen)
        at_once: int = AT_ONCE,
    ) -> None:
        self._access = access
        self._patience = patience
        self._turns = asyncio.Semaphore(at_once)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=access.tls, limit=0, keepalive_timeout=60),
            trust_env=False,
            read_bufsize=2**20,
            headers={"User-Agent": "benchpool", "Accept": JSON},
        )
        self.namespace = access.namespace
        self.server = access.server
        self.guard: Callable[[], None] | None = None
        self.writes = 0

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    # ------------------------------------------------------------------ reading

    @overload
    async def get(
        self, kind: Kind, name: str, *, namespace: str | None = None, subresource: str = ""
    ) -> Object: ...

    @overload
    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        as_: type[T],
    ) -> T: ...

    async def get(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        subresource: str = "",
        as_: Any = Object,
    ) -> Any:
        """Return one object as the server has it now (not from a cache)."""
        path = kind.path(namespace, name, subresource)
        return msgspec.json.decode(await self.request("GET", path), type=as_)

    @overload
    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
    ) -> Listing[Object]: ...

    @overload
    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        as_: type[T],
    ) -> Listing[T]: ...

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: str | None = None,
        fields: str | None = None,
        as_: Any = Object,
    ) -> Listing[Any]:
        """Return all objects, complete or not at all; pages are put together here.

        Args:
            labels, fields: Selectors, e.g. ``benchpool.io/role in (worker,notebook)``.
        """
        decoder = msgspec.json.Decoder(as_)
        for _ in range(3):
            found: list[Any] = []
            version = ""
            try:
                async for page, of_page in self.pages(kind, namespace, labels, fields):
                    found += map(decoder.decode, page)
                    version = of_page
            except Gone:
                continue  # a token has expired under way: what was read is no whole
            return Listing(tuple(found), version)
        raise KubeUnavailable(
            f"The list of {kind.plural} changes faster than it can be read; try again."
        )

    async def pages(
        self, kind: Kind, namespace: str | None, labels: str | None, fields: str | None
    ) -> AsyncIterator[tuple[Sequence[msgspec.Raw], str]]:
        """Yield undecoded objects, a page at a time, and the version of the whole.

        Errors: Gone when a page comes too late; what was yielded so far is no whole then.
        """
        params = _selectors(labels, fields) | {"limit": str(PAGE)}
        while True:
            answer = await self.request("GET", kind.path(namespace), params=params)
            head = msgspec.json.decode(answer, type=_ListHead)
            yield head.items or (), head.metadata.resourceVersion
            if not head.metadata.going_on:
                return
            params["continue"] = head.metadata.going_on

    # ------------------------------------------------------------------ writing

    async def create(
        self,
        kind: Kind,
        body: object,
        *,
        namespace: str | None = None,
        as_: Any = Object,
        dry_run: bool = False,
        patience: Patience | None = None,
    ) -> Any:
        """Create an object. Errors: AlreadyExists, also when an earlier try has created it."""
        return await self._write(
            "POST", kind.path(namespace), body, JSON, _dry(dry_run), as_, patience
        )

    async def replace(
        self,
        kind: Kind,
        name: str,
        body: object,
        *,
        namespace: str | None = None,
        subresource: str = "",
        as_: Any = Object,
        patience: Patience | None = None,
    ) -> Any:
        """Put an object in the place of another; with a ``resourceVersion`` only of that one.

        Errors: Conflict, NotFound.
        """
        path = kind.path(namespace, name, subresource)
        return await self._write("PUT", path, body, JSON, {}, as_, patience)

    async def patch(
        self,
        kind: Kind,
        name: str,
        patch: Patch,
        *,
        namespace: str | None = None,
        subresource: str = "",
        as_: Any = Object,
        patience: Patience | None = None,
    ) -> Any:
        """Change an object: a mapping is a merge patch, a sequence of operations a JSON patch.

        ``metadata.resourceVersion`` in a merge patch, or a ``test`` in a JSON patch, makes it
        depend on what the object is. Errors: Conflict, NotFound, Invalid for a failed ``test``.
        """
        form = MERGE_PATCH if isinstance(patch, Mapping) else JSON_PATCH
        path = kind.path(namespace, name, subresource)
        return await self._write("PATCH", path, patch, form, {}, as_, patience)

    async def apply(
        self,
        kind: Kind,
        name: str,
        body: Mapping[str, Any],
        *,
        manager: str,
        namespace: str | None = None,
        subresource: str = "",
        force: bool = True,
        as_: Any = Object,
    ) -> Any:
        """Make the object as ``body`` says, whether or not it is there (server-side apply)."""
        path = kind.path(namespace, name, subresource)
        params = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._write("PATCH", path, body, APPLY_PATCH, params, as_, None)

    async def delete(
        self,
        kind: Kind,
        name: str,
        *,
        namespace: str | None = None,
        propagation: Propagation = "Background",
        grace_s: int | None = None,
        precondition: Precondition | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Delete an object. Errors: NotFound, Conflict when it is not the one that was meant."""
        path = kind.path(namespace, name)
        await self._write("DELETE", path, _options(propagation, grace_s, precondition), JSON, {},
                          msgspec.Raw, patience)  # fmt: skip

    async def delete_all(
        self,
        kind: Kind,
        *,
        namespace: str,
        labels: str,
        propagation: Propagation = "Background",
        grace_s: int | None = None,
    ) -> None:
        """Delete the objects of a namespace that have these labels."""
        await self._write("DELETE", kind.path(namespace), _options(propagation, grace_s, None),
                          JSON, _selectors(labels, None), msgspec.Raw, None)  # fmt: skip

    async def _write(
        self,
        method: str,
        path: str,
        body: object,
        form: str,
        params: Params,
        as_: Any,
        patience: Patience | None,
    ) -> Any:
        data = msgspec.json.encode(body)
        answer = await self.request(
            method, path, data=data, form=form, params=params, patience=patience
        )
        self.writes += 1
        return msgspec.json.decode(answer, type=as_)

    # ------------------------------------------------------------------ bytes

    async def request(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None = None,
        form: str = JSON,
        params: Params | None = None,
        patience: Patience | None = None,
    ) -> bytes:
        """Return the body of a good answer; repeat what may be repeated."""
        patient = patience or self._patience
        begun, tries, renewed = time.monotonic(), 0, False
        while True:
            tries += 1
            asked = None
            try:
                async with self._turns:
                    if self.guard is not None and method != "GET":
                        self.guard()
                    status, answer, asked = await self._once(method, path, data, form, params)
            except (aiohttp.ClientError, TimeoutError, OSError) as failed:
                word = f"{type(failed).__name__}: {failed}".rstrip(": ")
            else:
                if status < 300:
                    return answer
                if status == 401 and not renewed:
                    renewed = True  # the token ran out between two looks at its source
                    continue
                if status not in AGAIN:
                    raise failure(status_of(status, answer))
                word = str(failure(status_of(status, answer)))
            spent = time.monotonic() - begun
            wait = wait_s(patient, tries, spent, random.random(), asked)  # noqa: S311
            if wait is None:
                raise KubeUnavailable(
                    f"The API server {self.server} has not done {method} {path} in {spent:.0f} s "
                    f"and {tries} tries ({word}); it is asked again when there is need.",
                    numbers={"seconds": round(spent), "tries": tries},
                )
            await asyncio.sleep(wait)

    async def _once(
        self, method: str, path: str, data: bytes | None, form: str, params: Params | None
    ) -> tuple[int, bytes, float | None]:
        headers = await self._headers(form if data is not None else None)
        body: bytes | AsyncIterator[bytes] | None = data
        if data is not None and self.guard is not None:
            headers["Content-Length"] = str(len(data))
            body = _guarded(self.guard, data)
        async with self._session.request(
            method,
            self.server + path,
            data=body,
            params=params,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S),
            proxy=self._access.proxy,
            server_hostname=self._access.server_name,
        ) as answer:
            return (
                answer.status,
                await answer.read(),
                asked_s(answer.headers.get("Retry-After")),
            )

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params | None = None, *, silence_s: float | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Open a body that goes on, e.g. a watch or a followed log; yields what comes as it comes.

        It is tried once. Errors: KubeFailure for another answer than a good one;
        KubeUnavailable when it breaks off, or nothing comes for ``silence_s``.
        """
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=CONNECT_S, sock_read=silence_s or None
        )
        try:
            async with self._session.get(
                self.server + path,
                params=params,
                headers=await self._headers(None),
                timeout=timeout,
                proxy=self._access.proxy,
                server_hostname=self._access.server_name,
            ) as answer:
                if answer.status >= 300:
                    status = status_of(answer.status, await answer.read())
                    if answer.status in AGAIN:
                        raise KubeUnavailable(f"The API server says: {failure(status)}")
                    raise failure(status)
                yield answer.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as failed:
            raise KubeUnavailable(
                f"The connection to the API server {self.server} broke off "
                f"({type(failed).__name__}: {failed}); it is opened again."
            ) from failed

    async def _headers(self, form: str | None) -> dict[str, str]:
        headers = await self._access.headers()
        if form is not None:
            headers["Content-Type"] = form
        return headers


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str | None = None,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
    at_once: int = AT_ONCE,
) -> AsyncIterator[Connection]:
    """Connect by a kubeconfig; without one as the pod's account, else by kubectl's default file.

    Nothing is asked of the server yet. Errors: Unavailable ``kubernetes-config``.
    """
    connection = Connection(
        await credentials.find(Where(kubeconfig, context)), patience=patience, at_once=at_once
    )
    try:
        yield connection
    finally:
        await connection.close()


async def _guarded(guard: Callable[[], None], data: bytes) -> AsyncIterator[bytes]:
    """Yield a body when the connection is there; a request without its body has no effect."""
    guard()
    yield data


def _selectors(labels: str | None, fields: str | None) -> Params:
    found = {"labelSelector": labels, "fieldSelector": fields}
    return {key: value for key, value in found.items() if value}


def _dry(dry_run: bool) -> Params:
    return {"dryRun": "All"} if dry_run else {}


def _options(
    propagation: Propagation, grace_s: int | None, precondition: Precondition | None
) -> Object:
    options: Object = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": propagation,
    }
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if precondition is not None:
        options["preconditions"] = {
            key: value
            for key, value in msgspec.to_builtins(precondition).items()
            if value is not None
        }
    return options
