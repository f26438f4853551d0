"""Studies that make no sense: nothing raises, and nothing is claimed that is no number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.diagnose import findings
from sweeper.spec import FlagValue, ServerConfig
from tests.diagnose.planted import OBJECTIVE, Night, plain

Flags = dict[str, FlagValue]
Launches = list[tuple[dict[str, float], list[int]]]

VALUES = st.sampled_from(["LL", "fa3", True, False, 1, 3, 8, 10**9, 0.5, ""])
NAMES = st.sampled_from(
    [
        "speculative_algorithm",
        "speculative_num_steps",
        "speculative_eagle_topk",
        "speculative_num_draft_tokens",
        "disable_cuda_graph",
        "attention_backend",
    ]
)
METRIC_VALUES = st.fixed_dictionaries(
    {},
    optional={
        OBJECTIVE: st.floats(0, 1e6),
        "accept_length": st.floats(1, 20),
        "accept_length_low": st.floats(1, 2),
        "accept_length_high": st.floats(2, 3),
        "num_verify_steps": st.integers(0, 10**6).map(float),
    },
)
LAUNCHES = st.lists(st.tuples(METRIC_VALUES, st.lists(st.integers(0, 5000), max_size=4)), max_size=3)


ROWS = st.lists(st.tuples(st.dictionaries(NAMES, VALUES), LAUNCHES), max_size=6)


@settings(max_examples=60)
@given(ROWS, st.sampled_from(["sglang", "vllm", ""]))
def test_no_study_is_too_strange_to_look_at(rows: list[tuple[Flags, Launches]], engine: str) -> None:
    night = Night(launches=3).measure([plain() for _ in rows])
    trials = []
    for trial, (flags, launches) in zip(night, rows, strict=True):
        config = ServerConfig(flags=flags)
        made = tuple(
            launch.model_copy(
                update={"metrics": metrics, "accepted_per_position": tuple(kept), "canonical": config}
            )
            for launch, (metrics, kept) in zip(trial.launches, launches, strict=False)
        )
        trials.append(trial.model_copy(update={"launches": made, "canonical": config}))
    for finding in findings(trials, OBJECTIVE, engine):
        assert finding.title
        assert "nan" not in f"{finding.title} {finding.text}".split()
