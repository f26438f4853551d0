"""What the report says of restarts: counted proofs, what is missing in them, phases, silent rewrites."""

from __future__ import annotations

from pathlib import Path

from analysis.reading import Reading, read
from analysis.sections.ranking import ranked
from analysis.sections.restarts import proofs, rewrites
from sweeper.records import LaunchRecord, PhaseTime, Proof
from sweeper.spec import ServerConfig
from tests.analysis import builders as b
from tests.analysis.studies import text_of

WHOLE = Proof(
    gpu_mib_before=(4, 4),
    port_free_before=True,
    nonce="n",
    model_path="/m",
    port_owned=True,
    num_probe_tokens=8,
    stop_signals=("TERM",),
    num_stopped=12,
    exit_code=137,
    port_free_after=True,
    gpu_mib_after=(4, 9),
)


def proved(night: b.Night, value: float, proof: Proof) -> LaunchRecord:
    starts = (("start: loading weights", 30.0), ("start: capturing CUDA graphs", 12.0))
    launch = b.measured(night, value)
    phases = (*launch.phases, *(PhaseTime(name=name, duration_s=time) for name, time in starts))
    return launch.model_copy(update={"proof": proof, "phases": phases, "accept_definition": "counted so"})


def reading_of(
    folder: Path, launches: tuple[LaunchRecord, ...], requested: dict[int, ServerConfig] | None = None
) -> Reading:
    """A study in which launch N is that of trial N; `requested` differs from what was made of it."""
    trials = []
    for number, launch in enumerate(launches):
        made = b.trial(number, b.ngram(3, 4 + number) if number else b.plain_config(), [launch])
        trials.append(made.model_copy(update={"requested": (requested or {}).get(number, made.requested)}))
    return read(b.fill(b.in_memory(folder), trials), b.simplicity)


def test_every_proof_is_counted_and_the_phases_of_the_start_are_shown(tmp_path: Path) -> None:
    night = b.new_night()
    reading = reading_of(tmp_path, (proved(night, 40, WHOLE), proved(night, 50, WHOLE)))
    text = text_of(proofs(reading))
    assert "2 of 2 measured launches with every proof" in text
    assert "at most 4 MiB in use on any of 2 GPUs before a launch, at most 9 MiB after one" in text
    assert "| loading weights | 30.0 s | 30.0 s | 2 |" in text
    assert "missing" not in text
    assert "accept_len: counted so." in text_of(ranked(reading))


def test_what_is_missing_in_a_proof_is_said_of_its_launch(tmp_path: Path) -> None:
    night = b.new_night()
    ghost = WHOLE.model_copy(update={"not_clean_after": "GPU 3 holds 70000 MiB", "stop_signals": ("TERM", "KILL")})
    unseen = WHOLE.model_copy(update={"port_free_after": None})
    reading = reading_of(tmp_path, (proved(night, 40, WHOLE), proved(night, 50, ghost), proved(night, 51, unseen)))
    text = text_of(proofs(reading))
    assert "1 of 3 measured launches with every proof" in text
    assert "- trial 1, launch 0: afterwards: GPU 3 holds 70000 MiB" in text
    assert "- trial 2, launch 0: the stop was not seen" in text
    assert "SIGKILL followed (trial 1)" in text


def test_old_records_without_proofs_have_no_such_part(tmp_path: Path) -> None:
    night = b.new_night()
    reading = reading_of(tmp_path, (b.measured(night, 40), b.measured(night, 50)))
    assert proofs(reading) is None
    assert rewrites(reading) is None


def test_what_the_engine_makes_of_a_request_is_shown_once_with_its_trials(tmp_path: Path) -> None:
    night = b.new_night()
    asked = b.ngram(3, 16)
    launches = tuple(b.measured(night, value) for value in (40, 50, 51))
    text = text_of(rewrites(reading_of(tmp_path, launches, requested={1: asked, 2: asked})))
    assert "- size_m: 16 becomes 5 (trial 1)" in text
    assert "- size_m: 16 becomes 6 (trial 2)" in text
