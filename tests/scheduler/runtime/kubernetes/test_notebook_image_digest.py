"""A job from a notebook runs the image digest of the notebook, even if the tag moves."""

from __future__ import annotations

import pytest

from benchpool_cluster.control_plane import ControlPlane
from benchpool_scheduler.kube import kinds
from benchpool_scheduler.runtime import Pinned
from benchpool_scheduler.runtime.kubernetes.images import ImageView, pin
from benchpool_scheduler.runtime.kubernetes.volumes import WHOSE
from benchpool_support.pods import KWOK, Stand
from benchpool_support.waiting import until_async

A, B = "a" * 64, "b" * 64


def test_image_tag_is_replaced_by_running_digest() -> None:
    for image, started, found in (
        ("lab/nb:1", f"docker.io/lab/nb@sha256:{A}", f"lab/nb@sha256:{A}"),
        ("python", f"docker.io/library/python@sha256:{A}", f"python@sha256:{A}"),
        ("reg.lab:5000/nb:1", f"reg.lab:5000/nb@sha256:{A}", f"reg.lab:5000/nb@sha256:{A}"),
        ("quay.io/nb:1", f"docker-pullable://quay.io/nb@sha256:{A}", f"quay.io/nb@sha256:{A}"),
    ):
        assert pin(image, "susan", [ImageView("susan", image, started)]) == Pinned(found)


@pytest.mark.parametrize(
    "started",
    [
        f"sha256:{A}",  # containerd's ID of an image without a registry
        f"docker.io/library/import-2026-11-21@sha256:{A}",  # the name that `kind load` gives
        f"quay.io/lab/nb@sha256:{A}",  # of another registry, whose credentials jobs may lack
    ],
)
def test_image_without_registry_digest_keeps_tag_with_reason(
    started: str,
) -> None:
    found = pin("lab/nb:1", "susan", [ImageView("susan", "lab/nb:1", started)])
    assert found.image == "lab/nb:1"
    assert found.why.startswith("it was loaded onto the notebook's node")


def test_ambiguous_or_unknown_image_is_unchanged() -> None:
    mine = ImageView("susan", "lab/nb:1", f"docker.io/lab/nb@sha256:{A}")
    newer = ImageView("susan", "lab/nb:1", f"docker.io/lab/nb@sha256:{B}")
    assert pin("lab/nb:1", "joe", [mine]).why == "no running notebook of joe has this image"
    assert pin("lab/nb:1", "susan", [mine, newer]).why == (
        "the notebooks of susan run 2 images of this name"
    )
    chosen = f"lab/nb@sha256:{B}"
    assert pin(chosen, "susan", [mine]) == Pinned(chosen)


@pytest.mark.kubernetes
async def test_runtime_reads_notebook_image_from_kubelet(stand: Stand, plane: ControlPlane) -> None:
    space = stand.settings.namespace
    confined = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    body = {
        "metadata": {
            "name": "jupyter-susan-40lab",
            "labels": {WHOSE: "susan-40lab"},
            "annotations": {WHOSE: "susan@lab"},
        },
        "spec": {
            "containers": [
                {"name": "sidecar", "image": "other", "securityContext": confined},
                {"name": "notebook", "image": "lab/nb:1", "securityContext": confined},
            ],
            "nodeName": stand.nodes[0],
            "tolerations": [KWOK],
        },
    }
    await stand.connection.create(kinds.PODS, body, namespace=space)
    await stand.until_pod(
        "jupyter-susan-40lab", lambda pod: pod["status"].get("phase") == "Running"
    )
    assert stand.runtime.pinned("susan@lab", "lab/nb:1").image == "lab/nb:1"
    statuses = [
        {"name": name, "image": image, "imageID": id_, "ready": True, "restartCount": 0}
        for name, image, id_ in (
            ("sidecar", "other", f"docker.io/library/other@sha256:{B}"),
            ("notebook", "lab/nb:1", f"docker.io/lab/nb@sha256:{A}"),
        )
    ]
    plane.access.patch(
        f"/api/v1/namespaces/{space}/pods/jupyter-susan-40lab/status",
        {"status": {"containerStatuses": statuses}},
    )

    async def pinned() -> bool:
        return stand.runtime.pinned("susan@lab", "lab/nb:1") == Pinned(f"lab/nb@sha256:{A}")

    await until_async(pinned)
