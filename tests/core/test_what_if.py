"""Questions to a study: what would this configuration do, and how good would its drafter have to be?"""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.diagnose.break_even import break_evens
from analysis.diagnose.context import Context
from analysis.reading import Stored, reading_of
from sweeper.__main__ import main
from sweeper.commands.predict import number_mistakes, split_question
from sweeper.errors import ConfigError, ExitCode
from sweeper.kept_search import KeptSearch
from sweeper.predicting.what_if import _listed, ask
from sweeper.predicting.what_if_words import as_data, words
from sweeper.spec import ServerConfig
from sweeper.storing.storage import StudyStore
from tests.core.drafting import BASE, FACTS, SPACE, open_study, run, shown

pytestmark = pytest.mark.study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study, `night`, that keeps how it was searched."""
    folder = tmp_path_factory.mktemp("what_if")
    study = open_study(folder)
    run(study)
    kept(study.store)
    return folder


def kept(store: StudyStore, unknown: str = "") -> None:
    KeptSearch(
        engine="sglang", objective="output_throughput", space=SPACE, base=BASE, facts=FACTS, unknown=unknown
    ).keep(store)


@pytest.fixture
def store(folder: Path) -> StudyStore:
    return StudyStore.open(f"sqlite:///{folder}/optuna.db", "night", str(folder), create=False)


def expected(**flags: str | int | bool) -> dict[str, float]:
    return shown(ServerConfig(flags={"speculative_algorithm": "EAGLE3", **flags}))


def mistakes(store: StudyStore, **asked: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        ask(store, asked)
    return caught.value.mistakes


def test_a_configuration_that_was_never_measured_is_foretold_by_short_names(store: StudyStore) -> None:
    _, answer = ask(store, {"num_steps": "6", "topk": "1", "draft_tokens": "4", "disable_cuda_graph": "false"})
    truth = expected(speculative_num_steps=6, speculative_num_draft_tokens=7)
    forecast = answer.forecast
    assert answer.config.flags["speculative_num_draft_tokens"] == 7
    assert forecast.throughput is not None
    assert forecast.accept_length is not None
    assert forecast.throughput.mean == pytest.approx(truth["output_throughput"], rel=0.1)
    assert forecast.accept_length.mean == pytest.approx(truth["accept_length"], rel=0.1)
    assert forecast.throughput.low < forecast.throughput.mean < forecast.throughput.high


def test_what_is_not_asked_for_is_as_in_the_best_trial(store: StudyStore) -> None:
    _, answer = ask(store, {"NCCL_PROTO": "Simple"})
    best = max((t for t in store.trials() if t.number), key=lambda t: t.mean("output_throughput") or 0)
    assert answer.rest_of.number == best.number
    assert answer.config.flags == best.canonical.flags
    assert answer.config.env == {"NCCL_PROTO": "Simple"}


def test_the_needed_accept_length_is_where_step_time_makes_it_equal_the_rival(store: StudyStore) -> None:
    _, answer = ask(store, {"num_steps": "3", "topk": "1"})
    step_ms = answer.forecast.step_time_ms
    assert step_ms is not None
    rivals = {trial.number: span.value for trial, span in answer.needed}
    assert rivals[0] == pytest.approx(100.0 * step_ms.mean / 1000)
    assert len(rivals) == 2


def test_of_a_measured_configuration_the_report_and_predict_say_the_same_is_needed(store: StudyStore) -> None:
    read = reading_of(Stored("night", store.trials(), store.fact("fingerprint") or {}), lambda _: (0.0,))
    (best, *_) = break_evens(Context(tuple(read.trials), "output_throughput", "sglang"))
    flags = best.point.trial.canonical.flags
    names = ("num_steps", "eagle_topk", "num_draft_tokens", "draft_model_path")
    asked = {n: str(v) for name, v in flags.items() for n in names if name == f"speculative_{n}"}
    asked |= {"disable_cuda_graph": str(flags.get("disable_cuda_graph", False)).lower()}
    _, answer = ask(store, {n: v for n, v in asked.items() if any(p.name.endswith(n) for p in SPACE.parameters)})
    assert answer.measured is not None
    assert answer.measured.number == best.point.number
    spans = {trial.number: span for trial, span in answer.needed}
    assert spans == {0: best.needed}


def test_what_is_needed_is_as_unsure_as_the_rival_and_the_step_time_together(store: StudyStore) -> None:
    _, answer = ask(store, {"num_steps": "6", "topk": "1", "disable_cuda_graph": "false"})
    step = answer.forecast.step_time_ms
    assert answer.measured is None
    assert step is not None
    assert all(span.high / span.value > step.high / step.mean for _, span in answer.needed)


def test_a_question_beyond_everything_measured_says_so(store: StudyStore) -> None:
    kept_search, answer = ask(store, {"num_steps": "60", "topk": "1"})
    measured = [t.canonical.flags["speculative_num_steps"] for t in store.trials() if t.number and t.measured]
    low, high = min(map(str, measured)), max(map(str, measured))
    told = f"speculative_num_steps=60 lies outside of what was measured, {low} to {high}: the model goes on"
    assert [line for line in words(kept_search, answer, ServerConfig(flags={})) if line.startswith(told)]
    outside = as_data(kept_search, answer)["outside"]
    assert isinstance(outside, dict)
    assert outside["speculative_num_steps"]["value"] == 60
    assert ask(store, {"num_steps": low, "topk": "1"})[1].outside == ()


def test_steps_beyond_the_space_are_foretold_and_an_illegal_tree_is_refused(store: StudyStore) -> None:
    assert ask(store, {"num_steps": "9", "topk": "1"})[1].config.flags["speculative_num_steps"] == 9
    assert "sglang would not run this: " in mistakes(store, num_steps="1", topk="2", draft_tokens="64")[0]


def test_a_tree_that_does_not_fit_what_was_asked_becomes_the_nearest_that_does(store: StudyStore) -> None:
    kept_search, answer = ask(store, {"num_steps": "1", "topk": "2"})
    assert answer.config.flags["speculative_num_draft_tokens"] == 3
    assert answer.fitted == {"speculative_num_draft_tokens": 3}
    told = words(kept_search, answer, ServerConfig(flags={}))[1]
    assert told.endswith(
        f"trial {answer.rest_of.number}, but speculative_num_draft_tokens=3: its own does not fit."
    )


def test_every_mistake_is_told_with_what_would_be_right(store: StudyStore) -> None:
    unknown, value, ambiguous = mistakes(store, steps_num="3", topk="many", num="2")
    assert unknown.startswith("steps_num: is not searched in this study")
    assert "speculative_num_steps" in unknown
    assert value == "topk: 'many' is no value of speculative_eagle_topk; it has 1, 2, 4"
    assert ambiguous.startswith("num: is not searched")
    assert "num_steps: '0' is no value of speculative_num_steps" in mistakes(store, num_steps="0")[0]
    conditional = mistakes(store, algorithm="none", num_steps="3")
    assert conditional == (
        "speculative_num_steps: exists only when speculative_algorithm is EAGLE3; ask for that as well",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [("b", "/m/b"), ("/m/a", "/m/a"), ("A", "/m/a"), ("twice", None), ("", None), ("m/b", "/m/b"), ("x", None)],
)
def test_a_path_may_be_called_by_its_end_where_only_one_ends_so(text: str, found: str | None) -> None:
    assert _listed(text, ("/m/a", "/m/b", "/m/twice", "/n/twice")) == found


def test_a_study_that_cannot_be_asked_says_why(tmp_path: Path) -> None:
    study = open_study(tmp_path)
    assert "does not say how it was searched" in mistakes(study.store, num_steps="3")[0]
    kept(study.store, unknown="the space searches none of a, b")
    assert mistakes(study.store, num_steps="3")[0].endswith("the space searches none of a, b")
    kept(study.store)
    assert "has measured no configuration yet that drafts" in mistakes(study.store, num_steps="3")[0]


def test_the_command_prints_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["predict", f"study.dir={folder}", "study.name=night", "num_steps=6", "disable_cuda_graph=false"]
    assert main(words) == ExitCode.OK
    lines = capsys.readouterr().out.splitlines()
    assert "EAGLE3" in lines[0]
    assert "steps6" in lines[0]
    assert [line.split()[0] for line in lines[3:8] if line] == [
        "predicted",
        "throughput",
        "accept_len",
        "step",
        "starts",
    ]
    assert any(line.startswith("As fast as the baseline it would be at an accept_len of ") for line in lines)


def test_settings_and_values_are_told_apart() -> None:
    words = ["preset=a", "study.name=b", "study/sampler=tpe", "num_steps=5", "env.NCCL_PROTO=LL", "space.x=1"]
    settings, asked, mistakes = split_question(words)
    assert settings == ["preset=a", "study.name=b", "study/sampler=tpe", "space.x=1"]
    assert asked == {"num_steps": "5", "env.NCCL_PROTO": "LL"}
    assert mistakes == []
    first, second = split_question(["topk", "num_steps=1", "num_steps=2"])[2]
    assert first.startswith("topk: write NAME=VALUE")
    assert "num_steps has two values" in second


def test_what_is_counted_is_a_whole_number_in_every_study() -> None:
    asked = {"num_steps": "x", "topk": "0", "speculative_num_draft_tokens": "16", "disable_cuda_graph": "maybe"}
    first, second = number_mistakes(asked)
    assert first == "num_steps: 'x' should be a whole number, 1 or greater"
    assert second.startswith("topk: '0'")
