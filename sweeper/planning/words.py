"""A `Plan` for people, as labelled lines in parts, the most important first. Pure."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sweeper.deadline import shown_end
from sweeper.planning.model import Command, Deadline, Launch, Plan, Space
from sweeper.tally import spent
from sweeper.text import plain

OK, WARNING, QUIET = "ok", "warning", "quiet"


@dataclass(frozen=True)
class Line:
    """`label` is empty where a line goes on. `tone`: ok, warning, quiet or nothing. `is_command`: to be copied."""

    label: str
    text: str
    tone: str = ""
    is_command: bool = False


@dataclass(frozen=True)
class Part:
    """Lines under a title; the first part has none."""

    title: str
    lines: tuple[Line, ...]


def parts(plan: Plan, zone: datetime.tzinfo, width: int) -> list[Part]:
    """All that a person should read; command lines are broken at `width` so that they can be copied."""
    return [
        Part("", tuple(_summary(plan, zone))),
        Part("the space after the rules", tuple(_space(plan.space))),
        Part("the search", tuple(Line("-", plain(line, 500)) for line in plan.search)),
        *([Part("the next launches", tuple(_stand_ins(plan)))] if plan.launches else []),
        *(_launch(each, width) for each in plan.launches),
        Part(
            "not checked: specsweep doctor asks the host", tuple(Line("-", plain(t, 300)) for t in plan.unchecked)
        ),
    ]


def _summary(plan: Plan, zone: datetime.tzinfo) -> Iterator[Line]:
    yield Line("study", f"{plain(plan.study)} on {plain(plan.host)}: {plain(plan.stands, 300)}")
    yield Line("server", f"{plain(plan.engine)}, {plain(plan.model)}; {plan.facts}")
    yield Line("ranked by", plain(plan.objective))
    yield Line("space", _space_text(plan.space), "" if plan.space.to_try != 0 else WARNING)
    if plan.num_launches.expected:
        yield Line("launches", _launches_text(plan))
        yield Line("a launch", _time_text(plan), WARNING if plan.launch_time.is_guess else "")
        yield from _end(plan, zone)
    for note in plan.notes:
        yield Line("note", plain(note, 400), WARNING)


def _space_text(space: Space) -> str:
    if space.is_sample:
        asked = "endless" if space.asked is None else f"{space.asked:,}"
        legal = 100 * (space.looked_at - space.illegal) / max(1, space.looked_at)
        return f"{asked} combinations, not listed; about {legal:.0f} % of {space.looked_at:,} at random are legal"
    base = ", the baseline among them" if space.has_baseline else ""
    return (
        f"{space.distinct:,} configurations{base}, of {space.asked:,} asked: {space.illegal:,} illegal, "
        f"{space.same:,} the same as another"
    )


def _launches_text(plan: Plan) -> str:
    found = plan.num_launches
    made = [f"{found.search} trial{'s' if found.search != 1 else ''} to measure"] if found.search else []
    made += [f"{found.controls} of the baseline again"] if found.controls else []
    made += [f"up to {found.confirm} to confirm"] if found.confirm else []
    return f"about {found.expected} ({found.at_least} to {found.at_most}): {', '.join(made)}"


def _time_text(plan: Plan) -> str:
    time = plan.launch_time
    if time.mean_s is None or time.low_s is None or time.high_s is None:
        return time.source
    return f"{spent(time.mean_s)} ({spent(time.low_s)} to {spent(time.high_s)}), {plain(time.source)}"


def _end(plan: Plan, zone: datetime.tzinfo) -> Iterator[Line]:
    """When it ends, and what each limit makes of that."""
    if plan.end_expected_at and plan.end_earliest_at and plan.end_latest_at:
        about = "a guess: " if plan.launch_time.is_guess else ""
        moments = (plan.end_expected_at, plan.end_earliest_at, plan.end_latest_at)
        expected, earliest, latest = (shown_end(moment, plan.now, zone) for moment in moments)
        length = spent((plan.end_expected_at - plan.now).total_seconds())
        cuts = [each for each in plan.deadlines if each.holds is not None and each.holds < each.needed]
        if cuts:
            told = f"cut short by {cuts[0].setting}; the whole would end {about}{expected}, in {length}"
            yield Line("end", told, WARNING)
        else:
            yield Line("end", f"{about}{expected} ({earliest} to {latest}), in {length}", OK)
    else:
        yield Line("end", "unknown, since the time of a launch is")
    for each in plan.deadlines:
        yield _deadline(each, plan)


def _deadline(limit: Deadline, plan: Plan) -> Line:
    left = f", {spent(max(0.0, limit.left_s))} left" if limit.left_s else ""
    if limit.holds is None:
        guess = _guessed(limit, plan)
        return Line("limit", f"{limit.setting}{left}: how many launches fit is unknown{guess}", WARNING)
    kept = f"; {spent(limit.kept_back_s)} kept back to confirm" if limit.kept_back_s else ""
    if limit.holds >= limit.needed:
        return Line("limit", f"{limit.setting}{left}: all {limit.needed} of the search fit{kept}", OK)
    text = f"{limit.setting}{left}: {limit.holds} of {limit.needed} launches of the search fit{kept}"
    return Line("limit", text, WARNING)


def _guessed(limit: Deadline, plan: Plan) -> str:
    """How many would fit if the guess were right; empty without one."""
    mean_s = plan.launch_time.mean_s
    if mean_s is None or not limit.left_s:
        return ""
    return f"; by the guess about {max(0, int(limit.left_s / mean_s))} in all"


def _space(space: Space) -> Iterator[Line]:
    if space.asked is None:
        yield Line("", f"without end: {', '.join(space.continuous)} may have any value in an interval")
    elif space.product is not None and space.product != space.asked:
        yield Line("", f"{space.product:,} if every value went with every other; {space.asked:,} under `when`")
    if space.is_sample:
        yield Line("", f"too many to list: {space.looked_at:,} were drawn at random, the counts are of these")
    for rule in space.rules:
        yield Line(f"{rule.count:,}", f"illegal: {plain(rule.reason)}")
        yield Line("", f"for example {plain(rule.example)}", QUIET)
    if sum(rule.count for rule in space.rules) > space.illegal:
        yield Line("", f"{space.illegal:,} in all: some break several rules", QUIET)
    if space.same:
        yield Line(f"{space.same:,}", "the same to the server as another one, and not launched twice")
    if (short := space.short_filter) is not None:
        missed = f"{short.missed:,} valid ones missed" + (f" ({plain(short.example)})" if short.example else "")
        rest = f"{short.let_through:,} illegal ones launched, {short.repeated:,} launched twice"
        yield Line("", f"the short filter `{short.rule}` alone: {missed}, {rest}", QUIET)
    for line in space.never_legal:
        yield Line("", plain(line), WARNING)


def _stand_ins(plan: Plan) -> Iterator[Line]:
    """What is not literal in the command lines, and what is taken out of the environment."""
    if sum(launch.purpose == "search" for launch in plan.launches) > 1:
        yield Line("", "proposed from what is known now: the first is sure, each result may change those after it")
    yield Line(
        "", "NONCE is a random word of each launch; the port is the first one of the range that is free", QUIET
    )
    names = sorted({name for each in plan.launches for command in each.commands for name in command.unset_env})
    if names:
        more = f" and {len(names) - 3} more (--json lists them)" if len(names) > 3 else ""
        yield Line("", f"removed from the host's own environment: {', '.join(names[:3])}{more}", QUIET)


def _launch(launch: Launch, width: int) -> Part:
    again = "" if launch.purpose in ("baseline", "search") else f", {launch.purpose}"
    lines = [Line("", plain(f"{launch.expected}; {launch.reason}".strip("; "), 400))] if launch.reason else []
    for number, command in enumerate(launch.commands):
        if len(launch.commands) > 1:
            lines.append(Line("", f"on node {number}:", QUIET))
        lines += [Line("", text, is_command=True) for text in _broken(command, width)]
    name = "" if launch.trial == 0 else f": {plain(launch.name)}"
    what = "the baseline" if launch.trial == 0 else f"trial {launch.trial}"
    return Part(f"{what}{again}{name}", tuple(lines))


def _broken(command: Command, width: int) -> list[str]:
    """The command for a shell, a backslash at the end of each line that goes on. Words are never broken."""
    groups: list[str] = []
    if command.env:
        groups += ["env", *(shlex.quote(f"{name}={value}") for name, value in command.env.items())]
    for word in command.argv:
        is_value = groups and groups[-1].startswith("--") and " " not in groups[-1] and not word.startswith("-")
        quoted = word if word == "***" else shlex.quote(word)
        groups[-1:] = [f"{groups[-1]} {quoted}"] if is_value else [*groups[-1:], quoted]
    lines = [""]
    for group in groups:
        if lines[-1] and len(lines[-1]) + len(group) + 3 > width:
            lines[-1] += " \\"
            lines.append(f"  {group}")
        else:
            lines[-1] = f"{lines[-1]} {group}".lstrip() if len(lines) == 1 else f"{lines[-1]} {group}"
    return lines
