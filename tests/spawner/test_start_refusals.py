"""A refusal has the same message everywhere in JupyterHub and never looks like a fault."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.web import HTTPError

from benchpool_scheduler.errors import (
    BenchpoolError,
    InvalidInput,
    NotAuthenticated,
    Refused,
    Unavailable,
)
from benchpool_spawner.refusal import StartRefused, from_error, neutralise_failure_count

SENTENCE = "susan holds 2 of 2 build GPUs: stop <a server> first."


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (InvalidInput(SENTENCE), 400, "gpu-options"),
        (Refused(SENTENCE, code="build-quota"), 409, "gpu-quota"),
        (Refused(SENTENCE, code="no-such-model"), 409, "gpu-policy"),
        (Unavailable(SENTENCE, code="build-full"), 503, "gpu-capacity"),
        (Unavailable(SENTENCE, code="not-reachable"), 503, "gpu-scheduler"),
        (NotAuthenticated(SENTENCE), 503, "gpu-scheduler"),
    ],
)
def test_scheduler_errors_become_labelled_refusals(
    error: BenchpoolError, status: int, reason: str
) -> None:
    refused = from_error(error)
    assert (refused.status_code, refused.reason) == (status, reason)
    assert isinstance(refused, HTTPError)  # the Hub relays these and logs no stack trace
    assert not isinstance(refused, ValueError)


def test_refusal_message_is_set_in_every_hub_attribute() -> None:
    refused = StartRefused(SENTENCE, reason="gpu-quota")
    assert str(refused) == refused.message == refused.jupyterhub_message == SENTENCE
    assert refused.jupyterhub_html_message == refused.message_html
    assert "<a server>" not in refused.message_html
    assert "&lt;a server&gt;" in refused.message_html


def test_temporary_refusal_has_retry_after() -> None:
    assert from_error(Unavailable("No GPU is free.", code="build-full")).headers["Retry-After"]
    assert not from_error(Refused("Over quota.", code="build-quota")).headers


def test_refusal_does_not_count_as_failure_in_jupyterhub_5() -> None:
    class Spawner:
        consecutive_failure_limit: Any = 5

    spawner = Spawner()
    neutralise_failure_count(spawner)
    assert spawner.consecutive_failure_limit == 0
