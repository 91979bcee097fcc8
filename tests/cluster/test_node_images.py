"""Images built from a Dockerfile on our base image run on the nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchpool_cluster import images, pods
from benchpool_cluster.cluster import Cluster

pytestmark = pytest.mark.kubernetes
NAME = "benchpool.test/greeter:1"
DOCKERFILE = """\
ARG BASE_IMAGE=python:3.11-slim
FROM ${BASE_IMAGE}
ARG WORD=nothing
COPY said.py /said.py
RUN echo "WORD = '${WORD}'" > /word.py && useradd --create-home me
USER me
CMD ["python3", "/said.py"]
"""


def test_pod_runs_built_image_as_its_user(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "said.py").write_text("import getpass, word; print(getpass.getuser(), word.WORD)")
    dockerfile = tmp_path / "Dockerfile"
    archive = images.make(dockerfile, NAME, context=tmp_path, arguments={"WORD": "hello"})
    cluster.load_image(archive, NAME)
    with pods.space(cluster) as space:
        pod = pods.python_pod("greeter", "")
        pod["spec"]["containers"][0] |= {"image": NAME, "command": ["python3", "/said.py"]}
        space.run(pod, "Succeeded")
        assert space.logs("greeter") == "me hello\n"
    again = images.make(dockerfile, NAME, context=tmp_path, arguments={"WORD": "hello"})
    assert again == archive
