"""Write the objects of a Helm install as files for `kubectl apply`, and list the images it needs.

Usage: ``python helm/manifests.py [-f VALUES]... [--namespace NAME] [--release NAME] [--out DIR]``.
With ``--images`` it prints only the images, to be mirrored for nodes without internet access. If
``images.mirror`` is set, each line also has the image's name in the mirror.

The files hold the output of ``helm template``, and only their owner may read them. Tokens and
passwords are created once: an existing ``secrets.yaml`` is left unchanged.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from helm_python import Chart, HelmError

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "helm" / "benchpool"
HOOK = "helm.sh/hook"
REGISTRY = re.compile(r"^(localhost|[^/]*[.:][^/]*)/")
"""Registry part of an image name, as in the chart (``benchpool.mirrored``)."""
FIRST = ("Namespace", "CustomResourceDefinition", "PriorityClass", "ServiceAccount", "Secret")
"""Kinds that others need; the rest follows in the order of the chart."""
OF_THE_CLUSTER = frozenset(
    {
        "Namespace", "CustomResourceDefinition", "PriorityClass", "ClusterRole",
        "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    }
)  # fmt: skip

Manifest = dict[str, Any]


def main(words: Sequence[str] | None = None) -> int:
    """Write the files or print the images; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-f", "--values", action="append", default=[], type=Path)
    parser.add_argument(
        "--namespace", default="benchpool", help="namespace of hub, proxy and scheduler"
    )
    parser.add_argument("--release", default="benchpool", help="prefix of all names")
    parser.add_argument("--out", default=ROOT / "dist" / "manifests", type=Path)
    parser.add_argument("--images", action="store_true", help="print the images only")
    chosen = parser.parse_args(words)
    values: Manifest = {}
    for file in chosen.values:
        values = merged(values, yaml.safe_load(file.read_text()) or {})
    try:
        objects = rendered(values, chosen.release, chosen.namespace)
    except HelmError as wrong:
        print(wrong, file=sys.stderr)
        return 1
    if chosen.images:
        print("\n".join(listed(values, objects, chosen.release, chosen.namespace)))
        return 0
    write(objects, chosen.out, chosen.namespace)
    return 0


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> Manifest:
    """Return values merged like Helm merges two files: by key, lists as a whole."""
    found = dict(one)
    for key, value in other.items():
        before = found.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        found[key] = merged(before, value) if both else value
    return found


def rendered(values: Mapping[str, Any], release: str, namespace: str) -> list[Manifest]:
    """Return all objects of a release, each with its namespace.

    Raises:
        HelmError: The chart could not be rendered.
    """
    with Chart.load(CHART) as chart:
        texts = chart.render(values=dict(values), name=release, namespace=namespace)
    objects = [
        one
        for name, text in sorted(texts.items())
        if not name.endswith("NOTES.txt")
        for one in yaml.safe_load_all(text)
        if one
    ]
    for one in objects:
        if one["kind"] not in OF_THE_CLUSTER:
            one["metadata"].setdefault("namespace", namespace)
    return sorted(objects, key=_rank)


def _rank(one: Manifest) -> int:
    return FIRST.index(one["kind"]) if one["kind"] in FIRST else len(FIRST)


def is_hook(one: Manifest) -> bool:
    """Return whether the object is a hook, which Helm runs beside an install and does not keep."""
    return HOOK in (one["metadata"].get("annotations") or {})


def is_made_once(one: Manifest) -> bool:
    """Return whether the object holds the tokens and passwords that the chart creates."""
    return one["kind"] == "Secret" and "server-secret" in one.get("data", {})


def write(objects: Sequence[Manifest], folder: Path, namespace: str) -> None:
    """Write the files and print how to apply them."""
    folder.mkdir(parents=True, exist_ok=True)
    secrets = folder / "secrets.yaml"
    kept = [one for one in objects if not is_hook(one) and not is_made_once(one)]
    made = [one for one in objects if is_made_once(one)]
    _write(folder / "benchpool.yaml", kept)
    _write(folder / "preflight.yaml", [one for one in objects if is_hook(one)])
    if made and not secrets.exists():
        _write(secrets, made)
    print(f"kubectl create namespace {namespace}")
    if made:
        print(f"kubectl apply --server-side -f {secrets}    # once: keep it, it holds the tokens")
    print(f"kubectl apply --server-side -f {folder / 'benchpool.yaml'}")
    print(f"# to check the cluster: kubectl create -f {folder / 'preflight.yaml'}, then its log")


def _write(file: Path, objects: Sequence[Manifest]) -> None:
    # Values may hold passwords of databases and of an identity provider.
    file.touch(mode=0o600)
    file.write_text(
        yaml.safe_dump_all(objects, sort_keys=False, width=120, allow_unicode=True), "utf-8"
    )


def listed(
    values: Manifest, objects: Sequence[Manifest], release: str, namespace: str
) -> list[str]:
    """Return a line for each image: its name, and its name in the mirror if there is one."""
    mirror = (values.get("images") or {}).get("mirror") or ""
    if not mirror:
        return images(objects, values)
    away = merged(values, {"images": {"mirror": ""}})
    originals = images(rendered(away, release, namespace), away)
    return [f"{image} {mirrored(image, mirror)}" for image in originals]


def mirrored(image: str, mirror: str) -> str:
    """Return the name of an image in a mirror, which replaces its registry.

    >>> mirrored("quay.io/a/b:1", "mirror.lan/all"), mirrored("benchpool/hub:1", "mirror.lan")
    ('mirror.lan/all/a/b:1', 'mirror.lan/benchpool/hub:1')
    """
    return f"{mirror.rstrip('/')}/{REGISTRY.sub('', image)}"


def images(objects: Sequence[Manifest], values: Mapping[str, Any]) -> list[str]:
    """Return every image that the release or its own pods run, sorted."""
    found = {image for one in objects for image in _of(one)}
    profiles = (values.get("notebooks") or {}).get("profiles") or ()
    return sorted(found | set(_named(profiles)))


def _of(value: Any) -> Iterator[str]:
    """Yield the images of containers, and the images that variables name."""
    if isinstance(value, list):
        for each in value:
            yield from _of(each)
    elif isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        if str(value.get("name", "")).endswith("_IMAGE") and value.get("value"):
            yield str(value["value"])
        for each in value.values():
            yield from _of(each)


def _named(value: Any) -> Iterator[str]:
    """Yield the server images that profiles set."""
    if isinstance(value, list):
        for each in value:
            yield from _named(each)
    elif isinstance(value, dict):
        if isinstance(value.get("image"), str):
            yield value["image"]
        for each in value.values():
            yield from _named(each)


if __name__ == "__main__":
    sys.exit(main())
