"""Every mistake that a person can make on the command line gives one line that helps."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweeper.config import load
from sweeper.errors import ConfigError
from tests.config.conftest import WriteFiles, mistakes

pytestmark = pytest.mark.compose

# (override, how its line begins, what it must say)
MISTAKES = [
    # groups
    ("engine=llamacp", "engine: 'llamacp'", "valid: llamacpp, sglang, vllm (did you mean llamacpp?)"),
    ("preset=llamacpp_smok", "preset: 'llamacpp_smok'", "llamacpp_chat, llamacpp_ngram, llamacpp_smoke"),
    ("workload=null", "workload=null", "workload=OPTION"),
    ("engine=[llamacpp]", "engine=[llamacpp]", "the name of one option"),
    ("engine=a,b", "engine=a,b", "'space.NAME=choice(a,b)'"),
    ("+engine=llamacpp", "+engine=llamacpp", "without +: engine=llamacpp"),
    ("~engine", "~engine", "engine=OPTION"),
    ("engin=llamacpp", "engin: ", "did you mean engine?"),
    ("model=gguf", "model.path: ", "model.path=VALUE"),
    # names
    (
        "budget.trails=3",
        "budget.trails: unknown name",
        "shortlist, finalists, confirm_launches, least_gain_pct, until, hours, energy_kwh (did you mean trials?)",
    ),
    ("budgett.trials=3", "budgett: unknown name", "did you mean budget?"),
    ("+limits.start=3", "limits.start: unknown name", "did you mean start_s?"),
    ("~space.nope", "~space.nope", "valid: spec_type"),
    ("~space.spec_type=3", "~space.spec_type=3", "without a value"),
    ("hydra.run.dir=x", "hydra.run.dir=x", "cannot be changed"),
    ("engine@other=llamacpp", "engine@other=llamacpp", "cannot be changed"),
    ("budget/trials=3", "budget/trials=3", "written with points: budget.trials=VALUE"),
    ("budget..trials=3", "'budget..trials=3'", "'budget..trials' is not a name"),
    ("engine.flags.--threads=2", "'engine.flags.--threads=2'", "is not a name"),
    ("'budget.trials=5'", "\"'budget.trials=5'\"", "leave one pair away"),
    # quoting
    ("study.name=\u201cnight\u201d", "'study.name=\u201cnight\u201d'", "\u201c is a typographic quotation mark"),
    ("space.threads=choice[1,2]", "'space.threads=choice[1,2]'", "round brackets: 'space.threads=choice(...)'"),
    ("budget.trials=5,", "'budget.trials=5,'", "leave the ',' at its end away"),
    ("study.name=${oc.env:X", "'study.name=${oc.env:X'", "a bracket is open"),
    ("study.name=${oc.env:}", "study.name: cannot be resolved", "${oc.env:NAME}"),
    # values
    ("study.storage=sqlite:///", "study.storage: 'sqlite:///'", "names no file; write sqlite:///PATH"),
    ("space.spec_type=choice(ngram-simpel)", "space.spec_type: 'ngram-simpel'", "did you mean ngram-simple?"),
    ("host.address=gpu1:22", "host.address: 'gpu1:22'", "a name or an address alone"),
    ("budget.trials=many", "budget.trials: 'many'", "whole number"),
    ("budget.trials=0", "budget.trials: 0", "greater than 0"),
    ("budget.finalists=9", "budget.finalists: 9", "8 or less"),
    ("budget.until=7", "budget.until: 7", "should be a time of day, as 07:00"),
    ("budget.until=25:00", "budget.until: '25:00'", "should be 07:00, 2026-12-01T07:00 or '07:00 Europe/Berlin'"),
    ("budget.until='07:00 Mars/Base'", "budget.until: '07:00 Mars/Base'", "no time zone that this machine knows"),
    ("budget.hours=0", "budget.hours: 0", "greater than 0"),
    ("on_finish=leave", "on_finish: 'leave'", "'stop', 'serve_best' or 'restore'"),
    ("on_finish=restore", "on_finish: restore", "host.replace_server=PORT"),
    ("on_finish_port=8000", "on_finish_port: 8000", "without on_finish=serve_best"),
    ("notify.webhook=example.org", "notify.webhook: ***", "should begin with https:// or http://"),
    ("notify.webhook_env='https://x.org/y'", "notify.webhook_env: 'https://x.org/y'", "not the URL itself"),
    ("notify.events=[done]", "notify.events.0: 'done'", "'first_winner', 'finished', 'interrupted' or 'aborted'"),
    ("budget.trials=null", "budget.trials: null", "whole number"),
    ("budget.trials=true", "budget.trials: true", "whole number"),
    ("budget=3", "budget: 3", "a mapping with trials, baseline_every, shortlist, finalists"),
    ("budget.trials.x=3", "budget.trials: {'x': 3}", "whole number"),
    ("workload.max_tokens=1.5", "workload.max_tokens: 1.5", "whole number"),
    ("limits.start_s=abc", "limits.start_s: 'abc'", "should be a number"),
    ("limits.start_s=nan", "limits.start_s: nan", "finite"),
    ("limits.stop_grace_s=-1", "limits.stop_grace_s: -1", "0 or greater"),
    (
        "study.sampler=tp",
        "study.sampler: 'tp'",
        "'auto', 'physics', 'tpe', 'gp', 'random', 'grid' or 'brute_force'",
    ),
    ("study/sampler=tp", "study/sampler: 'tp'", "valid: auto, brute_force, gp, grid, physics, random, tpe"),
    ("study/smapler=tpe", "study/smapler=tpe", "cannot be changed here"),
    ("study.sampler=physics", "study.sampler: 'physics'", "nothing is known of how llamacpp drafts; auto or tpe"),
    ("probe.nccl=true", "probe.nccl: true, but llamacpp does not use NCCL", "or probe.nccl=false"),
    ("probe.timeout_s=0", "probe.timeout_s: 0", "greater than 0"),
    ("probe.ncl=true", "probe.ncl: unknown name", "valid: nccl, timeout_s (did you mean nccl?)"),
    ("study.name=a/b", "study.name: 'a/b'", "should match"),
    ("study.dir='a?b'", "study.dir: 'a?b'", "should not contain '?'"),
    ("study.dir=''", "study.dir: ''", "should not be empty"),
    ("host.port_low=19000", "host.port_high: 18299", "port_low (19000)"),
    ("host.port_high=70000", "host.port_high: 70000", "less than 65536"),
    ("objective=ttft_ms", "objective: 'ttft_ms'", "cannot be ranked by; valid: output_throughput"),
    ("objective=throughput", "objective: 'throughput'", "did you mean output_throughput?"),
    ("objective=tok/s", "objective: 'tok/s' is not a metric", "did you mean output_throughput?"),
    ("objective=accept_len", "objective: 'accept_len'", "did you mean accept_length? It is recorded but"),
    ("objective=tptot_ms", "objective: 'tptot_ms'", "(did you mean tpot_ms? It is recorded but"),
    ("tracking.uri=5", "tracking.uri: 5", "should be text; quote it"),
    ("engine.command=[]", "engine.command: []", "at least one entry"),
    ("engine.name=trtllm", "engine.name: 'trtllm'", "valid: llamacpp"),
    ("engine.env.X=true", "engine.env.X: true", "quote it"),
    ("engine.flags.x=null", "engine.flags.x: null", "~engine.flags.x removes it"),
    ("engine.flags.x=[1]", "engine.flags.x: [1]", "text, a number, true or false"),
    ("engine.flags.draft_max=3", "engine.flags.draft_max", "spec_draft_n_max"),
    ("study.storage=${oc.env:NOT_SET_ANYWHERE}", "study.storage: ", "the environment variable NOT_SET_ANYWHERE"),
    ("study.storage='postgresql://me:a@hunter2@h/x'", "study.storage: 'postgresql://***@h/x'", "is written %40"),
    ("study.storage=${nope}", "study.storage: cannot be resolved", "'nope'"),
    ("study.storage=${study.storage}", "study.storage: cannot be resolved", "Recursive"),
    ("engine.command=[1]", "engine.command.0: 1", "should be text"),
    ("budget.trials=99999999999999999999", "budget.trials: 99999999999999999999", "should be 1000000 or less"),
    ("workload.repeats=1001", "workload.repeats: 1001", "should be 1000 or less"),
    ("study.seed=4294967296", "study.seed: 4294967296", "should be 4294967295 or less"),
    ("limits.start_s=1e300", "limits.start_s: 1e+300", "should be 10000000 or less"),
    ("tracking.uri=ftp://x", "tracking.uri: 'ftp://x'", "use sqlite:///PATH"),
    ("host.state_dir=other", "host.state_dir: 'other'", "should begin with / or ~/"),
    ("tracking.uri=http://x:notaport", "tracking.uri: 'http://x:notaport'", "Port"),
    ("tracking.uri=http://me:hunter2@x:70000", "tracking.uri: 'http://***@x:70000'", "Port"),
    ("tracking.artifact_location='a#b'", "tracking.artifact_location: 'a#b'", "should not contain '#'"),
    ("tracking.uri='sqlite:///x.db?mode=ro'", "tracking.uri: 'sqlite:///x.db?mode=ro'", "should not contain '?'"),
    ("study.storage='sqlite:////a%20b/x.db'", "study.storage: 'sqlite:////a%20b/x.db'", "should not contain '%'"),
    ("tracking.uri='sqlite:////a#b/x.db'", "tracking.uri: 'sqlite:////a#b/x.db'", "should not contain '#'"),
    # the environment
    ("engine.env={SPECSWEEP_SERVER: x}", "engine.env.SPECSWEEP_SERVER: ", "is set by specsweep itself"),
    ("space.env.SPECSWEEP_SERVER=choice(a,b)", "space.env.SPECSWEEP_SERVER: ", "is set by specsweep itself"),
    ("engine.env={A-B: x}", "engine.env: 'A-B' is not a variable's name", "letters, digits and _"),
    ("space.env={1A: x}", "space.env: '1A' is not a variable's name", "letters, digits and _"),
    # sweeps in the wrong place, Hydra's habits
    ("budget.trials=1,2", "budget.trials=1,2", "'space.NAME=choice(1,2)'"),
    ("workload.repeats=choice(1,2)", "workload.repeats=choice(1,2)", "'space.NAME=choice(1,2)'"),
    ("engine.flags.ctx_size=1,2", "engine.flags.ctx_size=1,2", "'space.ctx_size=choice(1,2)'"),
    ("engine.command=a,b", "engine.command=a,b", "'engine.command=[a,b]'"),
    ("engine.flags.spec_type=none", "engine.flags.spec_type=none: has no effect", "write space.spec_type=none"),
    ("--multirun", "--multirun", "specsweep sweeps by itself"),
    ("-m", "-m", "'space.NAME=choice(2,4)'"),
    ("--plain", "'--plain'", "options stand before the overrides"),
    ("budget.trials", "'budget.trials'", "write NAME=VALUE"),
    ("=3", "=3", "a name is missing"),
    # what a shell left over
    ("space.threads=choice(2,", "'space.threads=choice(2,'", "in quotes"),
    ("4)", "'4)'", "in quotes"),
    ("model.path=~/x.gguf", "'model.path=~/x.gguf'", """'model.path="~/x.gguf"'"""),
    # the space
    ("space.threads=choice()", "space.threads: 'choice()'", "at least one value"),
    ("space.threads=[]", "space.threads: []", "at least one entry"),
    ("space.threads=choice(1,null)", "space.threads: 'choice(1,null)'", "write false"),
    ("space.threads=[1,null]", "space.threads: [1, None]", "write false"),
    ("space.threads=null", "space.threads: null", "write false"),
    ("space.threads=choice(1,[2])", "space.threads: ", "not [2]"),
    ("space.threads=choice(1,1)", "space.threads: ", "1 appears again"),
    ("space.threads=choices(1,2)", "space.threads: ", "did you mean choice?"),
    ("space.threads=glob(*)", "space.threads: ", "write choice(a,b)"),
    ("space.threads=interval(1)", "space.threads: ", "interval(low,high)"),
    ("space.threads=range(8,1)", "space.threads: ", "up to, but not including, 1"),
    ("space.threads=range(3,3)", "space.threads: ", "the range is empty"),
    ("space.threads=range(1,3,step=0)", "space.threads: ", "a step above 0"),
    ("space.threads=range(0,1,step=0.0001)", "space.threads: ", "10000 values"),
    ("space.spec_draft_p_min=interval(1,0.5)", "space.spec_draft_p_min: ", "low < high, not 1 to 0.5"),
    ("space.spec_draft_p_min=tag(log,interval(0,1))", "space.spec_draft_p_min: ", "0 < low < high"),
    ("space.spec_draft_p_min=tag(lin,interval(0,1))", "space.spec_draft_p_min: ", "'lin' means nothing here"),
    ("space.threads=tag(log,choice(1,2))", "space.threads: ", "needs an interval"),
    ("space.threads={a:1}", "space.threads: {'a': 1}", "a mapping is no value"),
    ("space.spec_draft_n_max=range(0,4)", "space.spec_draft_n_max: 0", "at least 1"),
    ("space.threads='interval(1,2)'", "space.threads: interval(1, 2)", "int(interval(1,2)) or range(1,3)"),
    ("space.ubatch_size=interval(1.5,8.5)", "space.ubatch_size: interval(1.5, 8.5)", "int(interval(2,8))"),
    ("space.threads=interval(1.2,1.8)", "space.threads: interval(1.2, 1.8)", "takes whole ones"),
    ("space.some_flag=range(0,99999999999999999999)", "space.some_flag: ", "should be 9007199254740992 or less"),
    ("space.env=3", "space.env: 3", "should be a mapping"),
    ("space.env.X=choice(true,false)", "space.env.X: ", "write 0 and 1"),
    ("+space.env.spec_type=choice(a,b)", "space.env.spec_type: ", "a flag has this name"),
    # conditions
    ("space.when=3", "space.when: 3", "should be a mapping"),
    ("space.when.spec_type=3", "space.when.spec_type: 3", "should be a mapping"),
    ("space.when.nope.spec_type=ngram-simple", "space.when.nope: ", "not a parameter of the space"),
    ("space.when.spec_ngram_map_k_size_n.nope=1", "space.when.spec_ngram_map_k_size_n.nope", "nor a fixed flag"),
    (
        "space.when.spec_ngram_map_k_size_n.spec_type=ngram-map-q",
        "space.when.spec_ngram_map_k_size_n.spec_type: 'ngram-map-q'",
        "did you mean ngram-map-k?",
    ),
    (
        "space.when.spec_ngram_map_k_size_n.spec_ngram_map_k_size_m=5",
        "space.when.spec_ngram_map_k_size_n.spec_ngram_map_k_size_m: 5",
        "valid: 2, 3, 4, 6, 8, 12, 16",
    ),
    ("space.when.spec_ngram_map_k_size_n.spec_type=a,b", "space.when.", "_size_n.spec_type=[a,b]'"),
    (
        "space.when.spec_type.spec_ngram_simple_size_n=2",
        "space.when: ",
        "spec_type needs spec_ngram_simple_size_n",
    ),
    ("~space.spec_type", "space.when.spec_ngram_simple_size_n.spec_type (and 6 more)", "nor a fixed flag"),
]


# the same, in a preset that lists its prompts itself
IN_PROMPTS = [
    ("workload.prompts.0.txt=x", "workload.prompts.0.txt: unknown name", "valid: id, text, prompt_class"),
    ("workload.prompts.9.id=x", "workload.prompts.9.id=x", "out of range"),
    ("workload.prompts.1.id=boats", "workload.prompts: ", "'boats' appears again"),
    ("workload.prompts.0.text=''", "workload.prompts.0.text: ''", "should not be empty"),
    ("workload.prompts=[{id:a}]", "workload.prompts.0.text: ", "is missing"),
    ("workload.prompts=[{id:a,text:'???'}]", "workload.prompts.0.text: ", "is missing"),
]


@pytest.mark.parametrize(("override", "begins", "says"), IN_PROMPTS)
def test_a_mistake_in_listed_prompts_gives_one_helpful_line(override: str, begins: str, says: str) -> None:
    (line,) = mistakes("preset=llamacpp_smoke", override)
    assert line.startswith(begins)
    assert says in line


@pytest.mark.parametrize(("override", "begins", "says"), MISTAKES, ids=[override for override, _, _ in MISTAKES])
def test_a_mistake_gives_one_helpful_line(override: str, begins: str, says: str) -> None:
    (line,) = mistakes(override)
    assert line.startswith(begins)
    assert says in line
    assert "\n" not in line
    assert len(line) < 400


@pytest.mark.parametrize("engine", ["vllm", "llamacpp"])
def test_further_hosts_are_refused_where_the_engine_is_started_on_one(engine: str) -> None:
    preset = {"vllm": ["preset=vllm_any", "model.path=/m", "space.spec_model=/d"], "llamacpp": []}[engine]
    nodes = ["host=ssh", "host.ssh.destination=gpu1", "host.nodes=[gpu2]", "host.node_address='10.0.0.1:20000'"]
    (line,) = [line for line in mistakes(*preset, *nodes) if line.startswith("host.nodes")]
    assert line.endswith(
        f"gpu2, but specsweep starts {engine} on one host; a server that spans several is started with sglang"
    )


def test_all_mistakes_are_reported_at_once() -> None:
    lines = mistakes(
        "--multirun",
        "budget.trials=1,2",
        "tracking=mlflo",
        "host.port_low=many",
        "limits.start_s=0",
        "objective=speed",
        "engine.flags.draft_max=2",
        "space.spec_type=choice(ngram-simple,ngram-map-k4v,ngram-map-k,ngram)",
        "space.spec_ngram_map_k_size_n=range(2,2)",
        "study.storage=${oc.env:NOT_SET_ANYWHERE}",
        "model=gguf",
    )
    paths = {re.split(r"[:=] ?", line)[0] for line in lines}
    assert paths == {
        "--multirun",
        "budget.trials",
        "tracking",
        "host.port_low",
        "limits.start_s",
        "objective",
        "engine.flags.draft_max",
        "space.spec_type",
        "space.spec_ngram_map_k_size_n",
        "study.storage",
        "model.path",
    }
    assert len(lines) == len(paths)


def test_the_message_counts_and_lists_the_mistakes() -> None:
    with pytest.raises(ConfigError) as caught:
        load(["budget.trials=0", "budget.finalists=0"])
    assert str(caught.value).splitlines() == [
        "2 mistakes in the configuration:",
        "  budget.trials: 0 should be greater than 0",
        "  budget.finalists: 0 should be 1 or greater",
    ]


def test_an_unknown_option_hides_what_only_follows_from_it() -> None:
    lines = mistakes("engine=other", "engine.name=other", "space.spec_type=choice(a,b)", "budget.trials=0")
    assert [line.partition(":")[0] for line in lines] == ["engine", "budget.trials"]


def test_an_unknown_preset_hides_what_only_follows_from_it() -> None:
    lines = mistakes("preset=other", "~space.its_parameter", "workload.its_name=1", "budget.trials=0")
    assert [line.partition(":")[0] for line in lines] == ["preset", "budget.trials"]


def test_a_condition_on_a_fixed_flag_asks_the_engine_for_its_value() -> None:
    condition = "space.when.spec_ngram_map_k_size_n.spec_type=ngram-map-q"
    (line,) = mistakes("space.spec_type=ngram-map-k", condition)
    assert line.startswith("space.spec_type: 'ngram-map-q'")


def test_passwords_are_not_shown() -> None:
    (line,) = mistakes("study.storage=postgresql://me:hunter2@host/db?sslmode=require")
    assert "hunter2" not in line
    assert "***" in line
    (line,) = mistakes("objective=http://me:hunter2@host")
    assert "hunter2" not in line
    assert "***" in line


def test_a_space_without_anything_to_search_is_refused() -> None:
    lines = mistakes(
        "space.spec_type=ngram-map-k", "space.spec_ngram_map_k_size_n=2", "space.spec_ngram_map_k_size_m=4"
    )
    assert lines == ("space: nothing to search; give values like space.NAME='choice(2,4)'",)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("choice[2, 4]", "choice takes round brackets; write choice(a,b)"),
        ("range[1, 8]", "range takes round brackets"),
        ("interval{1, 8}", "interval takes round brackets"),
        ("choice 2, 4", "choice takes round brackets"),
        ("choice = (2,4)", "choice takes round brackets"),
        ("range 1 8", "range takes round brackets"),
        ("[choice(2,4)]", "write [2, 4], or choice(2,4) without a list around it"),
        ("1-8", "must be a whole number"),
        ("choice(2, 4", "cannot be read"),
        ("choise(2,4)", "did you mean choice?"),
    ],
)
def test_a_mistyped_sweep_in_a_file_is_one_message(write_files: WriteFiles, written: str, says: str) -> None:
    text = f"speculative_num_steps: {written}\nspeculative_draft_model_path: /d\n"
    folder = write_files({"space/mine.yaml": text})
    (line,) = mistakes(
        "preset=sglang_any", "space=mine", "host.ssh.destination=g", "model.path=/m", config_dir=folder
    )
    assert line.startswith("space.speculative_num_steps: ")
    assert says in line


@pytest.mark.parametrize("text", ["range", "choice", "interval of trust", "rangefinder"])
def test_a_text_with_the_name_of_a_sweep_is_a_text(write_files: WriteFiles, text: str) -> None:
    loaded = load(["+space.chat_template_file=" + f"'{text}'"])
    assert loaded.spec.engine.flags["chat_template_file"] == text


@settings(max_examples=15, deadline=None)
@given(st.text(max_size=30))
def test_whatever_is_typed_the_only_error_is_a_config_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        load(
            [
                *(text, f"space.threads={text}", f"study.name={text}", f"space.when.spec_type.threads={text}"),
                *(f"objective={text}", f"more_workloads.x.prompts_file={text}", f"more_workloads.{text}=3"),
            ]
        )


@pytest.mark.parametrize("character", ["?", "#", "%"])
def test_a_working_directory_that_no_address_can_hold_is_refused(
    character: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / f"what{character}now"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (line,) = mistakes()
    assert line.startswith(f"study.dir: 'sweeps' lies in {str(folder)!r}, whose {character!r}")
    assert line.endswith("set study.dir=/ANOTHER/PLACE")
    assert load([f"study.dir={tmp_path}"]).spec.study.dir == str(tmp_path)


def test_the_folder_of_each_database_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "50%"
    folder.mkdir()
    monkeypatch.chdir(folder)
    lines = mistakes(f"study.dir={tmp_path}", "study.storage=sqlite:///a.db", "tracking.uri=sqlite:///b.db")
    assert [line.partition(":")[0] for line in lines] == ["study.storage", "tracking.uri"]
