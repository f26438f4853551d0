"""What a person reads of a plan."""

from __future__ import annotations

import datetime

import pytest

from sweeper.planning.model import Command, Deadline, Launch, Launches, LaunchTime, Plan, Space
from sweeper.planning.words import Line, parts

NOW = datetime.datetime(2026, 12, 1, 22, 0, tzinfo=datetime.UTC)
NIGHT = Deadline(
    setting="budget.until=07:00",
    ends_at=NOW + datetime.timedelta(hours=9),
    left_s=32_400,
    kept_back_s=5400,
    holds=32,
    needed=32,
)
SPACE = Space(
    asked=100,
    product=100,
    looked_at=100,
    is_sample=False,
    illegal=10,
    same=20,
    distinct=70,
    has_baseline=True,
    rules=(),
    short_filter=None,
    continuous=(),
    never_legal=(),
)
PLAN = Plan(
    study="night",
    host="gpu1",
    engine="sglang 0.5.23",
    model="/m",
    objective="output_throughput",
    stands="new: nothing has been measured",
    trials_done=0,
    trials_total=30,
    space=SPACE,
    search=("random: draws at random",),
    launches=(
        Launch(trial=0, purpose="baseline", name="baseline", commands=(Command(argv=("server", "--port", "1")),)),
    ),
    num_launches=Launches(search=30, controls=2, confirm=15, expected=47, at_least=38, at_most=54),
    launch_time=LaunchTime(mean_s=360, low_s=340, high_s=380, num_timed=9, source="measured in 9 launches"),
    now=NOW,
    end_expected_at=NOW + datetime.timedelta(hours=4),
    end_earliest_at=NOW + datetime.timedelta(hours=3),
    end_latest_at=NOW + datetime.timedelta(hours=5),
    deadlines=(NIGHT,),
    facts="as study old saw the host at its last start",
    unchecked=("the host",),
    notes=(),
)


def line(label: str, **changes: object) -> Line:
    """The line of this label in the first part."""
    found = parts(PLAN.model_copy(update=changes), datetime.UTC, 80)[0]
    return next(each for each in found.lines if each.label == label)


def test_the_first_lines_say_how_much_and_until_when() -> None:
    assert line("space").text == (
        "70 configurations, the baseline among them, of 100 asked: 10 illegal, 20 the same as another"
    )
    assert line("launches").text == (
        "about 47 (38 to 54): 30 trials to measure, 2 of the baseline again, up to 15 to confirm"
    )
    assert line("a launch").text == "6 min (6 min to 6 min), measured in 9 launches"
    assert (line("end").text, line("end").tone) == ("02:00 (01:00 to 03:00), in 4 h 00 min", "ok")
    assert line("limit").text == (
        "budget.until=07:00, 9 h 00 min left: all 32 of the search fit; 1 h 30 min kept back to confirm"
    )


def test_a_night_that_is_too_short_is_a_warning_that_says_what_fits() -> None:
    short = (NIGHT.model_copy(update={"holds": 12}),)
    assert line("end", deadlines=short).tone == "warning"
    assert line("end", deadlines=short).text.startswith(
        "cut short by budget.until=07:00; the whole would end 02:00"
    )
    assert "12 of 32 launches of the search fit" in line("limit", deadlines=short).text


def test_a_guess_is_called_one_wherever_it_is_used() -> None:
    guess = PLAN.launch_time.model_copy(update={"is_guess": True, "source": "a guess from the 8B in its name"})
    assert line("a launch", launch_time=guess).tone == "warning"
    assert line("end", launch_time=guess).text.startswith("a guess: 02:00")
    unknown = (NIGHT.model_copy(update={"holds": None, "kept_back_s": None}),)
    told = line("limit", launch_time=guess, deadlines=unknown)
    assert told.text.endswith("how many launches fit is unknown; by the guess about 90 in all")
    assert told.tone == "warning"


def test_what_is_unknown_is_said_to_be() -> None:
    nothing = {"launch_time": LaunchTime(source="unknown until"), "end_expected_at": None}
    assert line("a launch", **nothing).text == "unknown until"
    assert line("end", **nothing).text == "unknown, since the time of a launch is"


def test_a_space_that_cannot_be_listed_is_told_by_its_sample() -> None:
    endless = SPACE.model_copy(update={"asked": None, "product": None, "is_sample": True, "continuous": ("x",)})
    assert line("space", space=endless).text == (
        "endless combinations, not listed; about 90 % of 100 at random are legal"
    )
    rules = parts(PLAN.model_copy(update={"space": endless}), datetime.UTC, 80)[1]
    assert any("x may have any value in an interval" in each.text for each in rules.lines)


@pytest.mark.parametrize("width", [40, 200])
def test_a_value_stays_on_the_line_of_its_flag(width: int) -> None:
    argv = ("python3", "-m", "server", "--a-long-flag", "with a value", "--bare", "--api-key", "***")
    launch = PLAN.launches[0].model_copy(update={"commands": (Command(argv=argv, env={"A": "x y"}),)})
    found = parts(PLAN.model_copy(update={"launches": (launch,)}), datetime.UTC, width)
    commands = [each.text for part in found for each in part.lines if each.is_command]
    text = "\n".join(commands)
    assert "--a-long-flag 'with a value'" in text
    assert "--api-key ***" in text
    assert text.startswith("env 'A=x y'")
    assert (len(commands) == 1) == (width == 200)


def test_a_complete_study_has_no_end() -> None:
    none = Launches(search=0, controls=0, confirm=0, expected=0, at_least=0, at_most=0)
    first = parts(PLAN.model_copy(update={"num_launches": none}), datetime.UTC, 80)[0]
    assert {each.label for each in first.lines} == {"study", "server", "ranked by", "space"}


def test_text_from_a_study_cannot_write_on_the_terminal() -> None:
    assert "\x1b" not in line("server", model="/m\x1b[2J").text
