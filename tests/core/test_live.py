from __future__ import annotations

import datetime
import io
from dataclasses import replace

import pytest
from rich.console import Console

from sweeper.deciding.plan import Progress, progress
from sweeper.errors import FailureKind
from sweeper.forecasts import Forecast, Span
from sweeper.live import PlainView, RichView
from sweeper.records import Proposal, Purpose, RequestResult, TrialRecord, TrialState, WorkloadResult
from sweeper.spec import BudgetSpec, ServerConfig
from sweeper.tally import AGAIN, standing
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


def shown(view: RichView, width: int = 90) -> str:
    screen = io.StringIO()
    console(screen, width).print(view.screen())
    return screen.getvalue()


class Abroad(FakeClock):
    def zone(self) -> datetime.tzinfo:
        return datetime.timezone(datetime.timedelta(hours=1))


def ended(**changes: object) -> str:
    """The line with which a launch of trial 1 ends."""
    out = io.StringIO()
    view = PlainView(console(out, 200), FakeClock(), OBJECTIVE)
    view.launch_ended(launch(31, trial=1).model_copy(update=changes), state(TRIALS[:1]))
    return out.getvalue()


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
    view.phase("measuring busy")
    view.request_done(request(-1, tokens=1), 1, 3)
    assert "measuring busy, warm-up request 1, 0 s" in shown(view)
    view.request_done(request(0), 2, 3)
    text = shown(view)
    assert "ngram-simple n4" in text
    assert "measuring busy, request 1 of 2, 50.0 tok/s so far" in text
    assert "trial 1: 60.0 tok/s (1.20 x), baseline 50.0 tok/s" in text
    assert "2 of 4 trials done, about" in text


def test_what_is_asked_of_the_bare_host_is_shown_before_and_between_launches() -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(TRIALS[:1]), ServerConfig())
    assert "phase" not in shown(view)
    view.phase("probing NCCL setting 3 of 12")
    assert "probing NCCL setting 3 of 12, 0 s" in shown(view)


def test_text_from_a_server_is_never_taken_as_markup() -> None:
    out = io.StringIO()
    view = RichView(console(out, 200), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1, spec_type="[red]x[/]"), state(TRIALS[:1]))
    view.launch_ended(launch(None, trial=1, failure=FailureKind.SERVER_CRASH), state(TRIALS[:1]))
    view.notice("[bold]\x1b[31mred")
    assert "[red]x" in out.getvalue()
    assert "[bold]" in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


def test_each_workload_counts_its_own_requests() -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1), state(TRIALS[:1]))
    view.launch_ended(launch(60, trial=1), state(TRIALS[:1]))
    view.launch_started(proposal(1), state(TRIALS[:1]))
    view.phase("measuring chat")
    view.request_done(request(0), 1, 1)
    view.phase("measuring busy")
    assert "measuring busy, 0 s" in shown(view)
    view.request_done(request(0, tokens=80), 1, 7)
    assert "request 1 of 7, 80.0 tok/s so far" in shown(view)


def test_requests_that_overlap_share_their_time() -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(TRIALS[:1]), ServerConfig())
    view.launch_started(proposal(1), state(TRIALS[:1]))
    for done in range(1, 5):
        view.request_done(request(0), done, 4)
    assert "request 4 of 4, 200.0 tok/s so far" in shown(view)


def test_more_requests_than_were_announced_are_no_nonsense() -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(TRIALS[:1]), ServerConfig())
    view.launch_started(proposal(1), state(TRIALS[:1]))
    view.request_done(request(0), 6, 5)
    assert "request 6 of 6" in shown(view)


@pytest.mark.parametrize("purpose", [Purpose.CONTROL, Purpose.RECHECK, Purpose.CONFIRM])
def test_a_launch_that_is_made_again_says_why(purpose: Purpose) -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(TRIALS[:2]), ServerConfig())
    view.launch_started(proposal(1, spec_n=3).model_copy(update={"purpose": purpose}), state(TRIALS[:2]))
    assert f"trial 1, {purpose.value}: n3" in shown(view)
    assert AGAIN[purpose] in " ".join(shown(view).split())


def test_an_early_stop_is_said_in_words_and_its_number_is_marked() -> None:
    why = "stopped after 2 of 5 prompts: 38 % (95 % interval 33 to 43 %) slower than trial 4; estimated from these"
    line = ended(estimated=why)
    assert "≈ 31.0 tok/s, ≈ 0.62 x baseline, stopped after 2 of 5 prompts: 38 % (95 % interval" in line
    assert "estimated from these" not in line
    assert "stopped early: 38 % slower" in ended(estimated="38 % slower")


def test_doubts_are_counted_over_all_workloads() -> None:
    others = {"busy": WorkloadResult(doubts=("c",))}
    assert "31.0 tok/s, 0.62 x baseline, 3 doubts" in ended(doubts=("a", "b"), others=others)
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    for doubts in ((), ("a",), ("b",)):
        view.launch_ended(launch(50).model_copy(update={"doubts": doubts}), state(TRIALS))
    assert "doubts  in 2 launches; the report says which" in shown(view)


def test_what_is_left_shrinks_while_a_launch_runs_and_never_below_the_others() -> None:
    now = replace(state(TRIALS), launches_left=3, mean_launch_s=600.0)
    assert standing(now) == "3 of 4 trials done, about 30 min to go"
    assert standing(now, 300) == "3 of 4 trials done, about 25 min to go"
    assert standing(now, 3000) == "3 of 4 trials done, about 20 min to go"


def test_after_the_search_launches_are_counted() -> None:
    now = replace(state(TRIALS), trials_done=4, launches_left=6, mean_launch_s=600.0)
    assert standing(now) == "all 4 trials done, up to 6 launches again, about 1 h 00 min to go"
    assert standing(replace(now, launches_left=0, mean_launch_s=None)) == "all 4 trials done"


def test_a_best_that_is_an_estimate_is_marked() -> None:
    early = TRIALS[1].launches[0].model_copy(update={"estimated": "stopped after 1 of 5 prompts"})
    trials = (TRIALS[0], TRIALS[1].model_copy(update={"launches": (early,)}))
    out = io.StringIO()
    PlainView(console(out, 200), FakeClock(), OBJECTIVE).launch_ended(early, state(trials))
    assert "[best trial 1: ≈ 60.0 tok/s (≈ 1.20 x), baseline 50.0 tok/s]" in out.getvalue()
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.sweep_started("night", state(trials), ServerConfig())
    assert "trial 1: ≈ 60.0 tok/s (≈ 1.20 x), baseline 50.0 tok/s" in shown(view)


FORETOLD = Forecast(
    throughput=Span(mean=58.0, low=55.0, high=61.0),
    accept_length=Span(mean=3.2, low=3.0, high=3.4),
    step_ms=Span(mean=55.2, low=52.0, high=58.0),
    p_start=0.97,
    gain_pct=1.2,
    remaining_pct=1.5,
    reason="largest expected gain",
)
WORDS = "predicted 58.0 tok/s (55.0-61.0), accept_len 3.20, a step 55.2 ms; starts: 97 %; largest expected gain"
LEFT = "no untested configuration is expected to bring more than 1.50 %"


def test_what_is_expected_is_said_before_and_how_right_it_was_after() -> None:
    out = io.StringIO()
    view = PlainView(console(out, 400), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1).model_copy(update={"forecast": FORETOLD}), state(TRIALS[:1]))
    view.launch_ended(launch(60, trial=1), state(TRIALS[:2]))
    assert f"trial 1: {WORDS}; {LEFT}" in out.getvalue()
    assert "1.20 x baseline, 3.4 % above the prediction" in out.getvalue()


def test_each_plain_line_has_its_date_and_the_time_where_it_is_read() -> None:
    """A night passes midnight; so does the one of who reads it in another time zone."""
    out, clock = io.StringIO(), Abroad()
    clock.elapsed_s = 22.5 * 3600
    view = PlainView(console(out, 200), clock, OBJECTIVE)
    view.notice("the night goes on")
    clock.elapsed_s += 1800
    view.notice("and is over")
    assert out.getvalue().splitlines() == [
        "2026-01-01 23:30:00 note: the night goes on",
        "2026-01-02 00:00:00 note: and is over",
    ]


def test_the_screen_says_why_and_what_is_left_to_gain() -> None:
    view = RichView(console(io.StringIO()), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1).model_copy(update={"forecast": FORETOLD}), state(TRIALS[:1]))
    text = " ".join(shown(view, 200).split())
    assert f"why {WORDS}" in text
    assert f"left {LEFT}" in text


def test_an_estimate_is_not_held_against_the_prediction() -> None:
    out = io.StringIO()
    view = PlainView(console(out, 400), FakeClock(), OBJECTIVE)
    view.launch_started(proposal(1).model_copy(update={"forecast": FORETOLD}), state(TRIALS[:1]))
    early = launch(30, trial=1).model_copy(update={"estimated": "stopped after 1 of 5 prompts"})
    view.launch_ended(early, state(TRIALS[:2]))
    assert "the prediction" not in out.getvalue()


def test_what_is_still_to_do_ends_with_the_night() -> None:
    now = replace(state(TRIALS), mean_launch_s=3600.0, night_left_s=1800.0, night_ends="at 07:00")
    assert standing(now) == "3 of 4 trials done, the night ends at 07:00, about 30 min to go"
    assert standing(now, 600) == "3 of 4 trials done, the night ends at 07:00, about 20 min to go"
    unknown = replace(now, mean_launch_s=None)
    assert standing(unknown) == "3 of 4 trials done, the night ends at 07:00, about 30 min to go"
