"""Handed-over configurations, and studies that hold them; also such as nobody would write on purpose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from sweeper.engines.base import HostFacts, Placement
from sweeper.engines.registry import engine_for
from sweeper.exporting.handover import Handover, Word, without_secrets
from sweeper.kept_search import KeptSearch
from sweeper.records import TrialRecord
from sweeper.secrets import Secrets
from sweeper.spec import Choice, FlagValue, Parameter, ServerConfig, SpaceSpec
from sweeper.storing.storage import StudyStore
from tests.analysis.builders import FINGERPRINT, fill, in_memory, plain_config

COMMAND = ("python3", "-m", "sglang.launch_server")
MODEL = "/models/Kimi K2.5"
ABOUT = ("Study night, trial 7: EAGLE3 steps3", "Advised: the winner.")
FACTS = HostFacts(engine_version="0.5.23", model_path="/models/m.gguf")

_ODD = (
    *(
        "",
        " ",
        " led",
        "trailed ",
        "two words",
        "a\nb",
        "a\tb",
        "'",
        '"',
        "\\",
        "\\\\$x",
        "`touch x`",
        "$(touch x)",
    ),
    *(
        "$HOME",
        "${HOME}",
        "$$",
        "$$$(X)",
        "%",
        "%n",
        "%%i",
        "%h$HOME",
        ";",
        "; x",
        "#",
        "# x",
        "a#b",
        "&",
        "|",
        "*",
        "~",
    ),
    *(
        "---",
        "--flag",
        "-",
        "y",
        "NO",
        "on",
        "true",
        "null",
        "~/x",
        "0x1f",
        "010",
        "1e3",
        "1:30",
        "1_000",
        ".inf",
        "[a]",
    ),
    *(
        "{a: b}",
        "!!str x",
        "&a",
        "*a",
        "a: b",
        "@x",
        ">",
        "|-",
        "\u2028",
        "\x85",
        "\ufeff",
        "\u00e9",
        "\U0001f600",
    ),
    *("\\${x}", "\\\\${x}", "${", "}", "{{x}}", "!", "=", "a=b", "\\n", "\\", "x\\"),
)
_CONTROLS = [chr(number) for number in (*range(9), *range(11, 32), 127)]
texts = st.one_of(
    st.sampled_from(_ODD),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters=_CONTROLS), max_size=12),
    st.lists(st.sampled_from(_ODD), min_size=2, max_size=3).map("".join),
)
names = st.from_regex(r"[a-z][a-z0-9_]{0,8}x", fullmatch=True)
values = st.one_of(st.booleans(), st.integers(-5, 2000), st.floats(0.001, 1e6), texts)
configs = st.builds(
    ServerConfig,
    flags=st.dictionaries(names, values, max_size=4),
    env=st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,6}X", fullmatch=True), texts, max_size=3),
)


def handover(
    config: ServerConfig,
    *,
    engine: str = "sglang",
    command: Sequence[str] = COMMAND,
    model: str = MODEL,
    nodes: tuple[int, str] = (1, ""),
    base: ServerConfig | None = None,
    secrets: Secrets | None = None,
    **more: object,
) -> Handover:
    """The configuration as the engine exports it, without reading a study."""
    made = engine_for(engine)
    placement = Placement(tuple(command), model, 30007, "nonce", num_nodes=nodes[0], node_address=nodes[1])
    serving = made.export(config, placement, replace(FACTS, model_path=model))
    flags, env = without_secrets(serving.flags, serving.env, secrets or Secrets(frozenset()))
    found = Handover(
        name="night-server",
        about=ABOUT,
        serving=serving,
        config=config,
        base=base or ServerConfig(),
        flags=flags,
        env=env,
        engine=engine,
        model_name="kimi",
        host="local",
    )
    return replace(found, **more)  # type: ignore[arg-type]


def expected(
    made: Handover, host: str, port: str, rank: int = 0, given: Mapping[str, str] | None = None
) -> list[str]:
    """The words behind the program, with what a person sets filled in."""
    values = {"SERVER_HOST": host, "SERVER_PORT": port, **(given or {})}

    def filled(word: Word) -> str:
        return word if isinstance(word, str) else values.get(word.name, word.default)

    groups = made.arguments(made.host_setting, made.port_setting, rank)
    return [filled(word) for group in groups for word in group]


def kept(engine: str = "llamacpp", base: ServerConfig | None = None, facts: HostFacts = FACTS) -> KeptSearch:
    parameter = Parameter(name="spec_type", domain=Choice(values=("ngram-simple",)))
    return KeptSearch(
        engine=engine,
        objective="output_throughput",
        space=SpaceSpec(parameters=(parameter,)),
        base=base or plain_config(),
        facts=facts,
    )


def launched(
    trials: Sequence[TrialRecord], engine: str = "llamacpp", command: Sequence[str] = ("llama-server",)
) -> list[TrialRecord]:
    """The trials with the command lines that the engine gives their launches."""
    made = engine_for(engine)
    placement = Placement(tuple(command), "/models/m.gguf", 18200, "specsweep a")
    return [
        trial.model_copy(
            update={
                "launches": tuple(
                    launch.model_copy(update={"argv": made.launch_spec(trial.canonical, placement).argv})
                    for launch in trial.launches
                )
            }
        )
        for trial in trials
    ]


def study(
    tmp_path: Path,
    trials: Sequence[TrialRecord],
    search: KeptSearch | None = None,
    fingerprint: Mapping[str, str] = FINGERPRINT,
) -> StudyStore:
    """A study in memory that says how it was searched."""
    store = fill(in_memory(tmp_path), launched(trials, (search or kept()).engine), fingerprint)
    (search or kept()).keep(store)
    return store


def flags(**values: FlagValue) -> ServerConfig:
    return ServerConfig(flags=values)
