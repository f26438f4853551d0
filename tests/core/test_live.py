from __future__ import annotations

import io

from rich.console import Console

from sweeper.errors import FailureKind
from sweeper.live import PlainView, RichView
from sweeper.plan import Progress, progress
from sweeper.records import Proposal, Purpose, RequestResult, TrialRecord, TrialState
from sweeper.result_table import result_table
from sweeper.spec import BudgetSpec, ServerConfig
from tests.fakes import EPOCH, FakeClock, launch, trial

OBJECTIVE = "output_throughput"
BUDGET = BudgetSpec(trials=4, finalists=1, confirm_launches=1)
TRIALS = (
    trial(0, [50]),
    trial(1, [60], spec_type="ngram-simple", spec_n=3),
    trial(2, state=TrialState.INFEASIBLE, failure=FailureKind.OUT_OF_MEMORY, spec_type="ngram-simple", spec_n=9),
)


def proposal(number: int, **flags: str | int) -> Proposal:
    made = ServerConfig(flags=flags)
    purpose = Purpose.SEARCH if number else Purpose.BASELINE
    return Proposal(trial_number=number, launch_number=0, purpose=purpose, requested=made, canonical=made)


def request(repeat: int, tokens: int = 50) -> RequestResult:
    return RequestResult(
        prompt_id="a",
        prompt_class="b",
        repeat=repeat,
        sent_at=EPOCH,
        e2e_latency_ms=1000,
        num_output_tokens=tokens,
    )


def state(trials: tuple[TrialRecord, ...]) -> Progress:
    return progress(trials, BUDGET, OBJECTIVE, True)


def console(file: io.StringIO, width: int = 90) -> Console:
    return Console(file=file, width=width, force_terminal=True, color_system=None, legacy_windows=False)


def test_plain_lines_say_what_is_measured_how_it_ended_and_what_is_best() -> None:
    out = io.StringIO()
    view = PlainView(console(out, 200), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(()), ServerConfig())
    view.launch_started(proposal(0), state(TRIALS[:1]))
    view.launch_ended(launch(50), state(TRIALS[:1]))
    view.launch_started(proposal(1, spec_type="ngram-simple", spec_n=3), state(TRIALS[:1]))
    view.launch_ended(launch(60, trial=1), state(TRIALS[:2]))
    view.launch_ended(launch(None, trial=2, failure=FailureKind.OUT_OF_MEMORY), state(TRIALS))
    view.notice("MLflow cannot be reached")
    text = out.getvalue()
    assert "study night: 0 of 4 trials done" in text
    assert "trial 1: ngram-simple n3 (1 of 4 trials done, about 50 s to go)" in text
    assert "trial 1: 60.0 tok/s, 1.20 x baseline [best trial 1: 60.0 tok/s (1.20 x), baseline 50.0 tok/s]" in text
    assert "trial 2: out_of_memory: it failed" in text
    assert "note: MLflow cannot be reached" in text


def test_the_screen_shows_phase_rate_best_and_eta() -> None:
    out = io.StringIO()
    view = RichView(console(out), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(TRIALS[:2]), ServerConfig())
    view.launch_started(proposal(2, spec_type="ngram-simple", spec_n=4), state(TRIALS[:2]))
    view.phase("benchmark")
    view.request_done(request(-1, tokens=1), 1, 3)
    view.request_done(request(0), 2, 3)
    screen = io.StringIO()
    console(screen).print(view.screen())
    text = screen.getvalue()
    assert "ngram-simple n4" in text
    assert "benchmark, request 2 of 3, 50.0 tok/s so far" in text
    assert "trial 1: 60.0 tok/s (1.20 x), baseline 50.0 tok/s" in text
    assert "2 of 4 trials done, about" in text


def test_text_from_a_server_is_never_taken_as_markup() -> None:
    out = io.StringIO()
    view = RichView(console(out, 200), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1, spec_type="[red]x[/]"), state(TRIALS[:1]))
    view.launch_ended(launch(None, trial=1, failure=FailureKind.SERVER_CRASH), state(TRIALS[:1]))
    view.notice("[bold]\x1b[31mred")
    assert "[red]x" in out.getvalue()
    assert "[bold]" in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


def test_the_table_ranks_and_marks_what_has_no_score() -> None:
    out = io.StringIO()
    console(out, 80).print(result_table(TRIALS, OBJECTIVE))
    lines = out.getvalue().splitlines()
    order = [line.split()[0] for line in lines if line.split()[:1] and line.split()[0].isdigit()]
    assert order == ["1", "0", "2"]
    assert "1.20 x" in out.getvalue()
    assert "ngram-simple n9" in out.getvalue()
    assert "[out_of_memory]" in out.getvalue()
    assert max(map(len, lines)) <= 80
