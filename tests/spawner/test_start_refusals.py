"""A refusal says the same sentence wherever JupyterHub shows it, and never looks like a fault."""

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
def test_every_error_of_the_scheduler_becomes_a_refusal_with_its_own_label(
    error: BenchpoolError, status: int, reason: str
) -> None:
    refused = from_error(error)
    assert (refused.status_code, refused.reason) == (status, reason)
    assert isinstance(refused, HTTPError)  # the Hub relays these, and logs no stack trace
    assert not isinstance(refused, ValueError)


def test_the_sentence_is_in_every_place_that_the_hub_reads() -> None:
    refused = StartRefused(SENTENCE, reason="gpu-quota")
    assert str(refused) == refused.message == refused.jupyterhub_message == SENTENCE
    assert refused.jupyterhub_html_message == refused.message_html
    assert "<a server>" not in refused.message_html
    assert "&lt;a server&gt;" in refused.message_html


def test_a_refusal_for_the_moment_says_when_to_try_again() -> None:
    assert from_error(Unavailable("No GPU is free.", code="build-full")).headers["Retry-After"]
    assert not from_error(Refused("Over quota.", code="build-quota")).headers


def test_jupyterhub_5_does_not_count_it_as_a_failure() -> None:
    class Spawner:
        consecutive_failure_limit: Any = 5

    spawner = Spawner()
    neutralise_failure_count(spawner)
    assert spawner.consecutive_failure_limit == 0
