"""The next launches of a study, asked of a copy in memory, with the command lines that they would get."""

from __future__ import annotations

from collections.abc import Iterator

from launchers.base import LaunchSpec
from launchers.masking import MASK, is_secret_name, masked_words
from sweeper.asking import Asking
from sweeper.deciding.plan import Step, searches_on
from sweeper.known_secrets import KNOWN
from sweeper.naming import difference_text
from sweeper.planning.model import Command, Launch
from sweeper.records import Purpose, TrialRecord
from sweeper.serving.placing import Placing
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.study_setup import Prepared

NONCE = "NONCE"
"""Stands for the random word of each launch."""

_SEARCHES = (Purpose.BASELINE, Purpose.SEARCH, Purpose.CONTROL)


def next_launches(prepared: Prepared, placing: Placing, budget: BudgetSpec, count: int) -> list[Launch]:
    """The next launch, and `count` more trials of the search, as the sampler proposes them from what is known.

    `prepared` is a copy: trials are begun in it. What is proposed after a launch that is still to come may change
    with what that shows.
    """
    study = prepared.study
    step = study.next_step(budget)
    if step is None:
        return []
    asking = Asking(study.store, prepared.candidates, study.baseline, prepared.sampler)
    purposes = {}
    if step.trial_number is not None:
        purposes[step.trial_number] = step.purpose
        _complete(step, asking, study.trials())
    for number in _further(step, asking, prepared, budget, count):
        purposes[number] = Purpose.SEARCH if number else Purpose.BASELINE
    trials = {trial.number: trial for trial in study.trials()}
    return [_launch(trials[number], purpose, prepared, placing) for number, purpose in purposes.items()]


def _further(step: Step, asking: Asking, prepared: Prepared, budget: BudgetSpec, count: int) -> Iterator[int]:
    """Begin new trials and give their numbers: the baseline if there is none, then `count` of the search."""
    store, found = prepared.study.store, 0
    while step.purpose in _SEARCHES and (found < count or not store.trials()):
        trials = store.trials()
        asking.know(trials)
        if not searches_on(trials, budget, asking.anything_left(trials)):
            return
        if (number := asking.new_trial()) is None:
            return
        found += number > 0
        _begin(number, asking)
        yield number


def _complete(step: Step, asking: Asking, trials: tuple[TrialRecord, ...]) -> None:
    """A trial that was begun and died before its configuration was written down gets it."""
    trial = next(trial for trial in trials if trial.number == step.trial_number)
    if not trial.key:
        asking.know(trials)
        _begin(trial.number, asking)


def _begin(number: int, asking: Asking) -> None:
    requested = asking.configuration(number)
    asking.books.begin(number, requested, asking.canonical(requested))


def _launch(trial: TrialRecord, purpose: Purpose, prepared: Prepared, placing: Placing) -> Launch:
    forecast = trial.forecast if purpose is Purpose.SEARCH else None
    config = trial.canonical.with_secrets_of(prepared.candidates.base)
    return Launch(
        trial=trial.number,
        purpose=purpose.value,
        name="baseline" if trial.is_baseline else difference_text(config, prepared.study.baseline),
        commands=commands_of(config, placing),
        expected=forecast.text if forecast else "",
        reason=forecast.reason if forecast else "",
    )


def commands_of(config: ServerConfig, placing: Placing) -> tuple[Command, ...]:
    """The command lines of a canonical configuration on the first port of the host's range, secrets hidden."""
    spec = placing.launch_spec(config, placing.spec.host.port_low, NONCE)
    return tuple(_shown(each) for each in (spec, *spec.others))


def _shown(spec: LaunchSpec) -> Command:
    KNOWN.learn_settings(spec.env)
    KNOWN.learn_words(spec.argv)
    return Command(
        argv=tuple(KNOWN.hide(word) for word in masked_words(spec.argv)),
        env={name: MASK if is_secret_name(name) else KNOWN.hide(value) for name, value in spec.env.items()},
        unset_env=spec.unset_env,
    )
