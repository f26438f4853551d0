"""What a study holds: no secret anywhere on disk, and the server still gets the real one, also after a crash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sweeper.deciding.sharing import Ranking
from sweeper.engines.base import HostFacts
from sweeper.errors import FailureKind, StudyMismatch
from sweeper.fingerprint import fingerprint
from sweeper.kept_search import KeptSearch
from sweeper.records import Failure, LaunchRecord, Proposal, Purpose
from sweeper.samplers.choice import SamplerSettings
from sweeper.searching.candidates import Candidates
from sweeper.spec import BudgetSpec, Choice, FlagValue, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore
from sweeper.study import Study
from tests.core.specs import sweep_spec
from tests.fakes import launch
from tests.security.planted import ALL, CLOUD_KEY, TOKEN, found_below, found_in

pytestmark = pytest.mark.study

SPACE = SpaceSpec(parameters=(Parameter(name="n", domain=Choice(values=(2, 3, 4))),))
BUDGET = BudgetSpec(trials=4, finalists=1, confirm_launches=2)
LOADER = f'{{"type": "s3", "secret_access_key": "{CLOUD_KEY}"}}'


def base(token: str = TOKEN) -> ServerConfig:
    return ServerConfig(flags={"ctx": 512, "loader_config": LOADER}, env={"HF_TOKEN": token})


def open_study(folder: Path, config: ServerConfig) -> Study:
    store = StudyStore.open(f"sqlite:///{folder}/optuna.db", "night", str(folder), create=True)
    candidates = Candidates(SPACE, config, lambda c: c, lambda c: [])
    ranking = Ranking("output_throughput")
    return Study(store, candidates, config, SamplerSettings("random", 0, 1), ranking)


def record_of(proposal: Proposal, failure: FailureKind | None = None) -> LaunchRecord:
    """A launch that says every secret in every text that it has."""
    said = " ".join(ALL)
    made = launch(
        None if failure else 50.0 + proposal.trial_number,
        trial=proposal.trial_number,
        number=proposal.launch_number,
        purpose=proposal.purpose,
    )
    told: dict[str, object] = {
        "requested": proposal.requested,
        "canonical": proposal.canonical,
        "argv": ("server", "--loader-config", LOADER, "--hf-token", TOKEN),
        "surprises": (said,),
        "effective": {"hf_token": TOKEN, "said": said},
        "doubts": (said,),
        "provenance": {"engine": said},
    }
    if failure:
        told["failure"] = Failure(kind=failure, message=said, evidence=(said, f"HF_TOKEN={TOKEN}"))
    return made.model_copy(update=told)


def artifacts() -> Mapping[str, bytes]:
    return {
        "server.log": b"\xff args: " + " ".join(ALL).encode(),
        "requests.jsonl": f'{{"a": "{TOKEN}"}}\n'.encode(),
    }


def sweep(folder: Path, config: ServerConfig, failing: int = -1) -> list[Proposal]:
    """A study that is opened anew before every launch."""
    made = []
    while (proposal := (study := open_study(folder, config)).ask(BUDGET)) is not None:
        failure = FailureKind.SERVER_CRASH if proposal.trial_number == failing else None
        study.tell(proposal, study.save(record_of(proposal, failure), artifacts()))
        made.append(proposal)
    return made


@pytest.fixture(autouse=True)
def _known() -> None:
    from sweeper.known_secrets import KNOWN

    KNOWN.learn(ALL)


def test_nothing_on_disk_holds_a_secret_and_every_launch_got_the_real_one(tmp_path: Path) -> None:
    made = sweep(tmp_path, base(), failing=2)
    assert {p.purpose for p in made} == {Purpose.BASELINE, Purpose.SEARCH, Purpose.CONFIRM}
    assert found_below(tmp_path) == {}
    for proposal in made:
        assert proposal.canonical.env == proposal.requested.env == {"HF_TOKEN": TOKEN}
        assert proposal.canonical.flags["loader_config"] == LOADER
    stored = open_study(tmp_path, base()).trials()
    assert [t.key for t in stored] == list(dict.fromkeys(p.canonical.key() for p in made))
    assert all(t.canonical.env == {"HF_TOKEN": "***"} for t in stored)


def test_a_launch_that_a_crash_interrupted_gets_the_real_secret_when_it_is_made_again(tmp_path: Path) -> None:
    first = open_study(tmp_path, base()).ask(BUDGET)
    again = open_study(tmp_path, base()).ask(BUDGET)
    assert first is not None
    assert again is not None
    assert again.canonical == first.canonical == base()
    assert found_below(tmp_path) == {}


def test_a_rotated_token_goes_on_with_the_same_trials(tmp_path: Path) -> None:
    before = sweep(tmp_path, base())
    assert sweep(tmp_path, base("hf_quite_another_one")) == []
    more = BUDGET.model_copy(update={"trials": 5})
    assert open_study(tmp_path, base("hf_quite_another_one")).ask(more) is None, "nothing untried is left"
    assert len({p.canonical.key() for p in before}) == 4


def fingerprint_of(env: Mapping[str, str], flags: Mapping[str, FlagValue]) -> dict[str, str]:
    spec = sweep_spec("llamacpp", SPACE, flags, "random")
    engine = spec.engine.model_copy(update={"env": env})
    return fingerprint(spec.model_copy(update={"engine": engine}), HostFacts())


def test_a_fingerprint_holds_no_secret_and_does_not_depend_on_one(tmp_path: Path) -> None:
    known = fingerprint_of({"HF_TOKEN": TOKEN}, {"loader_config": LOADER})
    assert found_in(repr(known).encode()) == []
    assert known["engine.env.HF_TOKEN"] == "***"
    assert fingerprint_of({"HF_TOKEN": "another"}, {"loader_config": LOADER}) == known
    study = open_study(tmp_path, base())
    study.require_same({**known, "engine.env.HF_TOKEN": repr(TOKEN)})
    study.require_same(known)  # what an earlier version wrote down in clear
    assert found_below(tmp_path) == {}
    with pytest.raises(StudyMismatch) as refused:
        study.require_same({name: value for name, value in known.items() if name != "engine.env.HF_TOKEN"})
    assert found_in(str(refused.value).encode()) == []


def test_what_a_study_keeps_of_its_search_holds_no_secret_and_can_be_asked(tmp_path: Path) -> None:
    store = open_study(tmp_path, base()).store
    KeptSearch(engine="llamacpp", objective="output_throughput", space=SPACE, base=base(), facts=HostFacts()).keep(
        store
    )
    assert found_below(tmp_path) == {}
    assert KeptSearch.of(store).base.key() == base().key()


def test_a_study_of_an_earlier_version_that_holds_secrets_counts_its_trials(tmp_path: Path) -> None:
    study = open_study(tmp_path, base())
    proposal = study.ask(BUDGET)
    assert proposal is not None
    trial = study._books._trial(proposal.trial_number)
    trial.set_user_attr("canonical", base().model_dump())
    trial.set_user_attr("key", "written-by-an-earlier-version")
    (seen,) = open_study(tmp_path, base()).trials()
    assert seen.key == base().key()
