"""Calls to the API server: raw JSON in and out, decoded only as far as the caller wants.

``as_`` names what an answer is decoded into: a msgspec ``Struct`` with the few fields that are
needed (others are skipped unread), or nothing for a plain ``dict``. What is sent may be either.

Calls are repeated on 408, 429, 5xx and lost connections, as long as their ``RetryPolicy`` lasts. So
a write may have been applied although its first try failed; the repeat then ends in
``KubeAlreadyExists``, ``KubeConflict`` or ``KubeNotFound``. Give objects names that follow from
what they are, and changes a ``resourceVersion``, and read back what a repeat finds taken.

    async with connect(kubeconfig) as connection:
        pods = await connection.list(PODS, namespace="research", labels="benchpool.io/role=worker")
        await connection.patch(PODS, name, [{"op": "remove", "path": ...}], namespace="research")
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec
from msgspec import Struct

from benchpool_scheduler.kube import kube_credentials
from benchpool_scheduler.kube.failures import KubeGone, KubeUnavailable
from benchpool_scheduler.kube.kinds import Kind
from benchpool_scheduler.kube.kube_credentials import Where
from benchpool_scheduler.kube.retry import RetryPolicy
from benchpool_scheduler.kube.wire import AT_ONCE, JSON, Params, Wire

T = TypeVar("T")
Object = dict[str, Any]
Patch = Mapping[str, Any] | Sequence[Mapping[str, Any]]
Propagation = Literal["Background", "Foreground", "Orphan"]

PAGE = 2000
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH, APPLY_PATCH = "application/json-patch+json", "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"


class Precondition(Struct, frozen=True, rename={"resource_version": "resourceVersion"}):
    """What must hold of an object that is deleted, else ``KubeConflict``."""

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


class Connection(Wire):
    """Calls of one API server by kind and name; see ``Wire`` for what it takes and has."""

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
            except KubeGone:
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
        patience: RetryPolicy | None = None,
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
        patience: RetryPolicy | None = None,
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
        strategic: bool = False,
        as_: Any = Object,
        patience: RetryPolicy | None = None,
    ) -> Any:
        """Change an object: a mapping is a merge patch, a sequence of operations a JSON patch.

        ``metadata.resourceVersion`` in a merge patch, or a ``test`` in a JSON patch, makes it
        depend on what the object is. Errors: Conflict, NotFound, Invalid for a failed ``test``.

        Args:
            strategic: The mapping is a strategic merge patch, which only Kubernetes' own kinds
                take: it knows the items of lists by their names.
        """
        form = MERGE_PATCH if isinstance(patch, Mapping) else JSON_PATCH
        form = STRATEGIC_PATCH if strategic else form
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
        patience: RetryPolicy | None = None,
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
        patience: RetryPolicy | None,
    ) -> Any:
        data = msgspec.json.encode(body)
        answer = await self.request(
            method, path, data=data, form=form, params=params, patience=patience
        )
        self.writes += 1
        return msgspec.json.decode(answer, type=as_)


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None,
    *,
    context: str | None = None,
    patience: RetryPolicy = RetryPolicy(),  # noqa: B008 (frozen)
    at_once: int = AT_ONCE,
) -> AsyncIterator[Connection]:
    """Connect by a kubeconfig; without one as the pod's account, else by kubectl's default file.

    Nothing is asked of the server yet. Errors: Unavailable ``kubernetes-config``.
    """
    connection = Connection(
        await kube_credentials.find(Where(kubeconfig, context)), patience=patience, at_once=at_once
    )
    try:
        yield connection
    finally:
        await connection.close()


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
