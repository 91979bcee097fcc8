"""Calls to the API server: raw JSON, decoded only as far as the caller needs.

``as_`` is the type into which an answer is decoded. It is a msgspec ``Struct`` with the needed
fields (other fields are skipped), or by default a plain ``dict``. A request body may be either.

Calls are retried on 408, 429, 5xx and lost connections, within their ``RetryPolicy``. So a write
may have been applied although its first try failed. The retry then raises ``KubeAlreadyExists``,
``KubeConflict`` or ``KubeNotFound``. Therefore derive the names of objects from their contents, set
a ``resourceVersion`` in changes, and read the existing object after such an error.

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
    """Conditions for the deletion of an object; if they do not hold, it raises KubeConflict."""

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True)
class Listing(Generic[T]):
    """All objects at one instant; a watch continues from ``resource_version``."""

    items: tuple[T, ...]
    resource_version: str


class _ListHead(Struct):
    class _Metadata(Struct):
        resourceVersion: str = ""
        # ``continue`` is a keyword of Python
        going_on: str = msgspec.field(default="", name="continue")

    metadata: _Metadata
    # An empty list may be null.
    items: list[msgspec.Raw] | None = None


class Connection(Wire):
    """Calls to one API server by kind and name; see ``Wire`` for arguments and attributes."""

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
        """Return an object from the server, never from a cache."""
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
        """Return all objects, joined from all pages.

        Raises KubeUnavailable if the list changes too fast to be read completely.

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
                continue  # the token of a page has expired, so the list is incomplete
            return Listing(tuple(found), version)
        raise KubeUnavailable(
            f"The list of {kind.plural} changes faster than it can be read. Try again."
        )

    async def pages(
        self, kind: Kind, namespace: str | None, labels: str | None, fields: str | None
    ) -> AsyncIterator[tuple[Sequence[msgspec.Raw], str]]:
        """Yield undecoded objects page by page, each with the resource version of the list.

        Raises KubeGone if a page is requested too late. The list is then incomplete.
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
        """Create an object. Raises KubeAlreadyExists, also if an earlier try has created it."""
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
        """Replace an object; with a ``resourceVersion``, only that version.

        Raises KubeConflict or KubeNotFound.
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
        """Change an object by a merge patch (mapping) or a JSON patch (sequence of operations).

        ``metadata.resourceVersion`` in a merge patch, or a ``test`` in a JSON patch, makes the
        change conditional. Raises KubeConflict, KubeNotFound, or KubeInvalid for a failed ``test``.

        Args:
            strategic: The mapping is a strategic merge patch, which identifies the items of lists
            by
                name. Only built-in kinds of Kubernetes accept it.
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
        """Create or change the object to match ``body`` (server-side apply)."""
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
        """Delete an object. Raises KubeNotFound, or KubeConflict if the precondition fails."""
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
        """Delete the objects of a namespace that match a label selector."""
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
    """Connect by a kubeconfig, else as the pod's account, else by kubectl's default file.

    No request is sent yet. Raises Unavailable with the code ``kubernetes-config``.
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
