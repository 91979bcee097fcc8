"""Retries in ``benchpool.yaml``: their rules, errors, and change descriptions."""

from __future__ import annotations

import pytest

from benchpool_scheduler.configuration import load
from benchpool_scheduler.configuration.comparison import compare
from benchpool_scheduler.contract.causes import EndCause
from benchpool_scheduler.core.lifecycle.retries import RULES
from benchpool_scheduler.errors import InvalidInput


def test_site_overrides_single_values() -> None:
    retries = load("{version: 1, retries: {gpu_error: {times: 5}, exit_code: {times: 1}}}").retries
    assert retries.rule(EndCause.GPU_ERROR).times == 5
    assert retries.rule(EndCause.GPU_ERROR).avoid_s == RULES[EndCause.GPU_ERROR].avoid_s
    assert retries.rule(EndCause.EXIT_CODE).times == 1
    assert retries.rule(EndCause.OUT_OF_MEMORY) == RULES[EndCause.OUT_OF_MEMORY]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{gpu_eror: {}}", "retries.gpu_eror is not a known key; did you mean `gpu_error`?"),
        ("{gpu_error: {times: 11}}", "retries.gpu_error.times is 11; it must be between 0 and 10."),
        ("{node_lost: {times: 1}}", "retries.node_lost is not a known key"),
        ("{exit_code: {pause_s: -1}}", "retries.exit_code.pause_s is -1"),
    ],
)
def test_invalid_value_is_rejected_with_key(text: str, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load(f"version: 1\nretries: {text}")
    assert what in str(refused.value)


def test_change_is_described_in_words() -> None:
    before = load("version: 1")
    after = load("{version: 1, retries: {gpu_error: {times: 0}, exit_code: {times: 1}}}")
    assert compare(before, after) == [
        "Retries of jobs after gpu-error: 2 times after 30 s, avoiding that node for 1 h → never.",
        "Retries of jobs after exit-code: never → 1 time after 10 s.",
    ]
