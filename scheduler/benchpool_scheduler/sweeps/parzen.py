"""Propose values near the best ones so far with Optuna's sampler, from our own table of trials.

Optuna keeps no record and has no database of its own. Its proposal depends only on the plan and the
trials.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchpool_scheduler.contract.sweeps import (
    ListedValues,
    Scalar,
    SweepGoal,
    SweepPlan,
    SweptValues,
)
from benchpool_scheduler.contract.swept_values import checked
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.sweeps.trials import SweepTrial, TrialState

FIRST_DRAWN = 10
"""Number of trials with random values before the sampler uses results (Optuna's own default)."""


def propose(plan: SweepPlan, trials: Sequence[SweepTrial]) -> Mapping[str, Scalar]:
    """Return the values of the next trial. Errors: InvalidInput if Optuna is not installed."""
    optuna = _optuna()
    seed = zlib.crc32(f"{plan.seed}/{len(trials)}".encode())
    sampler = optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=FIRST_DRAWN, multivariate=True, constant_liar=True
    )
    study = optuna.create_study(
        sampler=sampler,
        direction="minimize" if plan.goal is SweepGoal.MINIMIZE else "maximize",
    )
    space = {name: _distribution(optuna, checked(of, name)) for name, of in plan.parameters.items()}
    for trial in trials:
        known = _known(optuna, trial, plan.parameters, space)
        if known is not None:
            study.add_trial(known)
    asked = study.ask(space)
    return {name: _value(of, asked.params[name]) for name, of in plan.parameters.items()}


def _optuna() -> Any:
    """Return the library. Only these sweeps load it, since it is large (decision 0093)."""
    try:
        import optuna
    except ImportError as missing:
        raise InvalidInput(
            "The method tpe needs Optuna, which is not installed with the scheduler. Use the "
            "method random, or install it there: `pip install 'benchpool[sweeps]'`.",
            code="extra-missing",
            field="method",
        ) from missing
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _distribution(optuna: Any, of: SweptValues) -> Any:
    kinds = optuna.distributions
    if isinstance(of, ListedValues):
        # Keyed by position: values that are equal to Python (1, True, 1.0) stay apart.
        return kinds.CategoricalDistribution(range(len(of.values)))
    if of.whole:
        return kinds.IntDistribution(int(of.low), int(of.high), log=of.log)
    return kinds.FloatDistribution(of.low, of.high, log=of.log)


def _known(
    optuna: Any,
    trial: SweepTrial,
    parameters: Mapping[str, SweptValues],
    space: Mapping[str, Any],
) -> Any:
    """Return a trial in Optuna's form, or None if it has no information for the sampler."""
    states, value = optuna.trial.TrialState, trial.value
    if trial.state is TrialState.OPEN:
        state, value = states.RUNNING, None
    elif value is None or trial.state in (TrialState.FAILED, TrialState.CANCELLED):
        return None
    else:
        state = states.PRUNED if trial.state is TrialState.STOPPED_EARLY else states.COMPLETE
    return optuna.trial.create_trial(
        state=state,
        params={name: _place(of, trial.parameters[name]) for name, of in parameters.items()},
        distributions=dict(space),
        value=value if state is states.COMPLETE else None,
        intermediate_values={
            point.step: point.value for point in trial.points if math.isfinite(point.value)
        },
    )


def _place(of: SweptValues, value: Scalar) -> Any:
    return _index(of.values, value) if isinstance(of, ListedValues) else value


def _index(values: Sequence[Scalar], value: Scalar) -> int:
    return next(
        place for place, one in enumerate(values) if one == value and type(one) is type(value)
    )


def _value(of: SweptValues, found: Any) -> Scalar:
    if isinstance(of, ListedValues):
        return of.values[int(found)]
    return int(found) if of.whole else float(found)
