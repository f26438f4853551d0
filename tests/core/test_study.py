from __future__ import annotations

import json
from pathlib import Path

import optuna
import pytest

from sweeper.books import CONSTRAINT
from sweeper.deciding.sharing import Ranking
from sweeper.errors import ConfigError, FailureKind, SpecsweepError, StorageUnusable, StudyMismatch
from sweeper.records import LaunchRecord, Proposal, Purpose, TrialState
from sweeper.samplers.choice import SamplerSettings
from sweeper.samplers.encoding import distribution, optuna_name, suggest
from sweeper.searching.candidates import Candidates
from sweeper.spec import BudgetSpec, Choice, IntRange, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore
from sweeper.storing.study_facts import searched_otherwise
from sweeper.study import Study
from tests.fakes import launch

pytestmark = pytest.mark.study

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=8, finalists=2, confirm_launches=1)

SPACE = SpaceSpec(
    parameters=(
        Parameter(name="kind", domain=Choice(values=("simple", "map"))),
        Parameter(name="n", domain=Choice(values=(2, 3, 4)), when={"kind": ("simple",)}),
        Parameter(name="m", domain=IntRange(low=1, high=6)),
        Parameter(name="hits", domain=Choice(values=(1, 2)), when={"kind": ("map",)}),
    )
)


def rewrite(config: ServerConfig) -> ServerConfig:
    """A made-up engine's rewrite: it knows no more than four drafts."""
    m = config.flags.get("m")
    return config.with_flags({"m": 4}) if isinstance(m, int) and m > 4 else config


def refuse(config: ServerConfig) -> list[str]:
    return ["n=2 with m=1 is refused"] if config.flags.get("n") == 2 and config.flags.get("m") == 1 else []


def open_study(directory: Path, space: SpaceSpec = SPACE, seed: int = 0, sampler: str = "random") -> Study:
    url = f"sqlite:///{directory}/optuna.db"
    store = StudyStore.open(url, "night", str(directory), create=True)
    candidates = Candidates(space, ServerConfig(flags={"ctx": 512}), rewrite, refuse)
    settings = SamplerSettings(sampler, seed, startup_trials=3)
    return Study(store, candidates, ServerConfig(flags={"ctx": 512}), settings, Ranking(OBJECTIVE))


def speed(config: ServerConfig) -> float:
    m, n = config.flags.get("m", 0), config.flags.get("n", 3)
    assert isinstance(m, int)
    assert isinstance(n, int)
    return 50 + 10 * m - 2 * m * m - abs(n - 3)


def record_of(proposal: Proposal, value: float | None, failure: FailureKind | None = None) -> LaunchRecord:
    made = launch(
        value,
        trial=proposal.trial_number,
        number=proposal.launch_number,
        purpose=proposal.purpose,
        failure=failure,
    )
    return made.model_copy(update={"requested": proposal.requested, "canonical": proposal.canonical})


def finish(study: Study, proposal: Proposal, failure: FailureKind | None = None) -> None:
    value = None if failure else speed(proposal.canonical)
    record = study.save(record_of(proposal, value, failure), {"server.log": b"log"})
    study.tell(proposal, record)


def run_all(study: Study, budget: BudgetSpec = BUDGET) -> list[Proposal]:
    made = []
    while (proposal := study.ask(budget)) is not None:
        finish(study, proposal)
        made.append(proposal)
    return made


def test_trial_zero_is_the_baseline_and_then_the_search_and_the_finalists(tmp_path: Path) -> None:
    made = run_all(open_study(tmp_path))
    assert made[0].is_baseline
    assert made[0].canonical == ServerConfig(flags={"ctx": 512})
    assert [p.purpose for p in made] == [Purpose.BASELINE] + [Purpose.SEARCH] * 7 + [Purpose.CONFIRM] * 3
    assert [p.trial_number for p in made[:8]] == list(range(8))


def test_equal_and_illegal_configurations_are_never_proposed(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    made = run_all(study, BudgetSpec(trials=100, finalists=1, confirm_launches=0))
    keys = [p.canonical.key() for p in made]
    assert len(set(keys)) == len(keys)
    # simple: 3 n x 4 distinct m, less the refused one; map: 2 hits x 4 distinct m; and the baseline.
    assert len(keys) == (3 * 4 - 1) + 2 * 4 + 1
    assert not any(refuse(p.canonical) for p in made)
    assert study.ask(BudgetSpec(trials=1000, finalists=1, confirm_launches=0)) is None


def test_every_finished_trial_is_complete_in_optuna_with_its_value(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    run_all(study)
    trials = study.store.optuna.get_trials()
    assert all(t.state is optuna.trial.TrialState.COMPLETE for t in trials)
    assert study.store.optuna.best_trial.value == max(speed(t.canonical) for t in study.trials())


def test_a_study_that_is_opened_anew_before_every_trial_proposes_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    straight = run_all(open_study(tmp_path / "a", sampler="tpe"))
    resumed = []
    while (proposal := (study := open_study(tmp_path / "b", sampler="tpe")).ask(BUDGET)) is not None:
        finish(study, proposal)
        resumed.append(proposal)
    assert [p.canonical for p in resumed] == [p.canonical for p in straight]


def test_another_seed_proposes_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = run_all(open_study(tmp_path / "a")), run_all(open_study(tmp_path / "b", seed=1))
    assert [p.canonical for p in one] != [p.canonical for p in other]


EVERYTHING = BudgetSpec(trials=100, finalists=1, confirm_launches=0)


def test_the_grid_goes_in_the_order_of_the_space_the_last_parameter_fastest(tmp_path: Path) -> None:
    made = [p.canonical.flags for p in run_all(open_study(tmp_path, sampler="grid"), EVERYTHING)][1:]
    seen = [tuple(flags.get(name) for name in ("kind", "n", "m", "hits")) for flags in made]
    simple = [("simple", n, m, None) for n in (2, 3, 4) for m in (1, 2, 3, 4) if (n, m) != (2, 1)]
    assert seen == simple + [("map", None, m, hits) for m in (1, 2, 3, 4) for hits in (1, 2)]


def test_the_grid_keeps_values_that_a_person_enqueued(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="grid")
    finish(study, _ask(study))
    study.store.optuna.enqueue_trial({"kind": "map", "m": 3})
    flags = _ask(study).canonical.flags
    assert (flags["kind"], flags["m"], flags["hits"]) == ("map", 3, 1)


@pytest.mark.parametrize("sampler", ["grid", "brute_force"])
def test_a_list_is_walked_to_its_end_and_each_is_tried_once(tmp_path: Path, sampler: str) -> None:
    keys = [p.canonical.key() for p in run_all(open_study(tmp_path, sampler=sampler), EVERYTHING)]
    assert len(keys) == len(set(keys)) == (3 * 4 - 1) + 2 * 4 + 1


def test_the_gaussian_process_searches_a_space_with_conditions(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    made = run_all(open_study(tmp_path, sampler="gp"), BudgetSpec(trials=12, finalists=1, confirm_launches=0))
    assert len({p.canonical.key() for p in made}) == len(made) == 12


def test_brute_force_has_an_order_for_each_seed(tmp_path: Path) -> None:
    orders = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        study = open_study(tmp_path / name, sampler="brute_force", seed=seed)
        few = BudgetSpec(trials=5, finalists=1, confirm_launches=0)
        orders.append([p.canonical.key() for p in run_all(study, few)])
    assert orders[0] == orders[1] != orders[2]


def test_a_study_goes_on_with_another_sampler_and_says_so(tmp_path: Path) -> None:
    study = open_study(tmp_path, sampler="random")
    assert searched_otherwise(study.store, "random", 0) == ""
    run_all(study, BudgetSpec(trials=3, finalists=1, confirm_launches=0))
    other = open_study(tmp_path, sampler="tpe", seed=5)
    assert searched_otherwise(other.store, "tpe", 5).startswith(
        "the search was random with seed 0 and is now tpe with seed 5;"
    )
    assert len(run_all(other, BudgetSpec(trials=5, finalists=1, confirm_launches=0))) == 2
    assert searched_otherwise(open_study(tmp_path).store, "tpe", 5) == ""


def test_a_trial_that_died_before_its_record_is_asked_for_again_under_its_number(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    abandoned = _ask(study)
    again = _ask(open_study(tmp_path))
    assert (again.trial_number, again.canonical) == (abandoned.trial_number, abandoned.canonical)


def test_a_trial_that_died_while_its_values_were_being_chosen_is_completed(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    half = study.store.optuna.ask()
    half.suggest_categorical("kind", ["simple", "map"])
    again = _ask(open_study(tmp_path))
    assert again.trial_number == half.number
    assert again.canonical.flags["kind"] == half.params["kind"]
    finish(study, again)
    assert len({t.key for t in study.trials()}) == 2


@pytest.mark.parametrize("seed", range(8))
def test_what_a_crash_left_half_chosen_is_what_was_planned(tmp_path: Path, seed: int) -> None:
    """Values chosen one by one: wherever it dies, the rest is what it would have been."""
    whole, half = open_study(tmp_path / "whole", seed=seed), open_study(tmp_path / "half", seed=seed)
    for study in (whole, half):
        finish(study, _ask(study))
    planned = _ask(whole).canonical
    first = SPACE.parameters[0]
    suggest(half._asking.searching.ask(), optuna_name(first), distribution(first))
    assert _ask(open_study(tmp_path / "half", seed=seed)).canonical == planned


def test_a_trial_that_died_between_its_record_and_its_tell_is_finished_from_the_record(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    proposal = _ask(study)
    study.save(record_of(proposal, 77.0), {})
    notes = (reopened := open_study(tmp_path)).reconcile()
    assert "finished from its record" in notes[0]
    assert reopened.store.optuna.get_trials()[1].value == 77.0
    assert _ask(reopened).trial_number == 2


def test_a_saved_launch_that_is_saved_again_is_replaced_not_doubled(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    proposal = _ask(study)
    study.save(record_of(proposal, 50.0), {"server.log": b"short"})
    study.save(record_of(proposal, 50.0), {"server.log": b"longer"})
    (only,) = study.trials()
    assert len(only.launches) == 1
    assert study.artifact(0, "launch-0-server.log") == b"longer"


@pytest.mark.parametrize(
    ("kind", "launches", "state"),
    [
        (FailureKind.OUT_OF_MEMORY, 1, TrialState.INFEASIBLE),
        (FailureKind.SILENT_BYPASS, 1, TrialState.INFEASIBLE),
        (FailureKind.ILLEGAL, 1, TrialState.INFEASIBLE),
        (FailureKind.SERVER_CRASH, 2, TrialState.INFEASIBLE),
        (FailureKind.BENCHMARK_FAILED, 2, TrialState.FAILED),
    ],
)
def test_a_failure_is_told_by_the_policy_table(
    tmp_path: Path, kind: FailureKind, launches: int, state: TrialState
) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    for number in range(launches):
        proposal = _ask(study)
        assert (proposal.trial_number, proposal.launch_number) == (1, number)
        finish(study, proposal, kind)
    assert study.trials()[1].state is state
    assert _ask(study).trial_number == 2


def test_an_infeasible_trial_violates_a_constraint_and_a_measured_one_does_not(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    finish(study, _ask(study), FailureKind.OUT_OF_MEMORY)
    finish(study, _ask(study))
    good, oom, other = study.store.optuna.get_trials()
    assert oom.constraints[CONSTRAINT] > 0
    assert good.constraints[CONSTRAINT] == other.constraints[CONSTRAINT] == 0


def test_a_dirty_host_is_never_held_against_the_configuration(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    for _ in range(5):
        proposal = _ask(study)
        assert proposal.trial_number == 1
        finish(study, proposal, FailureKind.HOST_DIRTY)
    assert study.trials()[1].state is TrialState.RUNNING
    finish(study, _ask(study))
    assert study.trials()[1].state is TrialState.COMPLETE


def test_a_baseline_that_fails_can_be_measured_by_a_later_start(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study), FailureKind.OUT_OF_MEMORY)
    again = _ask(open_study(tmp_path))
    assert (again.is_baseline, again.launch_number) == (True, 1)


def test_a_trial_in_which_specsweep_died_five_times_is_put_aside(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    for _ in range(5):
        assert _ask(open_study(tmp_path)).trial_number == 1
    assert _ask(open_study(tmp_path)).trial_number == 2
    assert open_study(tmp_path).trials()[1].state is TrialState.FAILED


def test_a_trial_abandoned_on_request_any_number_of_times_is_still_measured(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    for _ in range(9):
        study = open_study(tmp_path)
        proposal = _ask(study)
        assert proposal.trial_number == 1
        study.release(proposal)


def test_launches_after_the_tell_are_kept_beside_the_first(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    run_all(study)
    counts = {t.number: len(t.launches) for t in study.trials()}
    assert counts[0] == 2
    assert sorted(counts.values()) == [1] * 5 + [2] * 3
    confirmed = next(t for t in study.trials() if t.number and len(t.launches) == 2)
    assert [x.purpose for x in confirmed.launches] == [Purpose.SEARCH, Purpose.CONFIRM]
    assert study.artifact(confirmed.number, "launch-1-server.log") == b"log"


def test_an_enqueued_duplicate_is_not_launched_and_does_not_count(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    finish(study, _ask(study))
    first = _ask(study)
    finish(study, first)
    study.store.optuna.enqueue_trial(study.store.optuna.get_trials()[1].params)
    following = _ask(study)
    assert following.canonical.key() != first.canonical.key()
    assert len(study.trials()) == 3


def test_a_continuous_space_is_searched_without_being_enumerated(tmp_path: Path) -> None:
    from sweeper.spec import Interval

    space = SpaceSpec(parameters=(Parameter(name="p", domain=Interval(low=0.1, high=1.0, log=True)),))
    study = open_study(tmp_path, space)
    values = []
    for _ in range(6):
        proposal = _ask(study)
        values.append(proposal.canonical.flags.get("p"))
        finish(study, proposal)
    assert len(set(values)) == 6


def test_changed_settings_are_named_and_refused(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    study.require_same({"space.m": "range 1..6", "model.content": "aa"})
    study.require_same({"space.m": "range 1..6", "model.content": "aa"})
    with pytest.raises(
        StudyMismatch, match=r"space\.m: range 1\.\.6 then, range 1\.\.9 now[\s\S]*study\.name="
    ) as seen:
        open_study(tmp_path).require_same({"space.m": "range 1..9", "model.content": "aa"})
    assert "model.content" not in str(seen.value)


def test_a_missing_study_is_named_with_those_that_exist(tmp_path: Path) -> None:
    open_study(tmp_path)
    with pytest.raises(ConfigError, match=r"study\.name: 'nigth'.*its studies: night"):
        StudyStore.open(f"sqlite:///{tmp_path}/optuna.db", "nigth", str(tmp_path), create=False)


def test_a_missing_storage_is_not_created_by_reading_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"study\.storage: .*does not exist"):
        StudyStore.open(f"sqlite:///{tmp_path}/none.db", "night", str(tmp_path), create=False)
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("nonsense", ConfigError),
        ("sqlite:////proc/none/x.db", ConfigError),
        ("postgresql://u:secret@localhost/db?nonsense=1", ConfigError),
        ("postgresql://u:secret@localhost/db", StorageUnusable),
    ],
)
def test_a_storage_that_cannot_be_opened_is_one_message_without_secrets(
    tmp_path: Path, url: str, kind: type[SpecsweepError]
) -> None:
    with pytest.raises(kind, match=r"study\.storage") as seen:
        StudyStore.open(url, "night", str(tmp_path), create=True)
    assert "secret" not in str(seen.value)


def test_a_damaged_record_is_reported_with_its_trial(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    proposal = _ask(study)
    storage = study.store.optuna._storage
    trial_id = storage.get_trial_id_from_study_id_trial_number(study.store.optuna._study_id, proposal.trial_number)
    storage.set_trial_user_attr(trial_id, "launch:0", {"record": {"nonsense": 1}, "artifacts": []})
    with pytest.raises(
        SpecsweepError, match=r"the stored record cannot be read[^:]*:\n  trial 0, launch 0: record\."
    ):
        open_study(tmp_path).trials()


def test_a_record_of_another_trial_is_reported_as_damaged(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert _ask(study).trial_number == 0
    record = launch(5.0, trial=7)
    stored = {"record": json.loads(record.model_dump_json()), "artifacts": []}
    study.store.optuna.set_user_attr("launch:0:1", stored)
    with pytest.raises(SpecsweepError, match=r"trial 0, launch 1: it says that it is of trial 7"):
        open_study(tmp_path).trials()


@pytest.mark.parametrize("name", ["../../etc/passwd", "launch-0-none.txt"])
def test_an_unknown_artifact_is_a_key_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(KeyError):
        open_study(tmp_path).artifact(0, name)


def _ask(study: Study) -> Proposal:
    proposal = study.ask(BUDGET)
    assert proposal is not None
    return proposal
